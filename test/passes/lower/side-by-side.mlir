// RUN: lathe-opt %s --kernel-set-target="threads=2" --kernel-side-by-side="parallel-work=16000" --mlir-print-local-scope | FileCheck %s
// RUN: lathe-opt %s --kernel-set-target="threads=1" --kernel-side-by-side="parallel-work=16000" --mlir-print-local-scope | FileCheck %s --check-prefix=ONE
// RUN: lathe-opt %s "--pass-pipeline=builtin.module(kernel-set-target{threads=2},kernel-side-by-side{parallel-work=16000},kernel-plan-memory)" | FileCheck %s --check-prefix=PLAN
// ONE-NOT: kernel.side

!t = tensor<16x64xf32>
!w = tensor<64x64xf32>

// Two loops of a dozen small products or so; what the second one reads goes before the group, what reads both behind it.
// CHECK-LABEL: func.func @directions
// CHECK: %[[LATE:.*]] = hlo.negate
// CHECK: %[[A:.*]]:2 = "hlo.while"
// CHECK: }) {kernel.side = array<i64: 0, 0>}
// CHECK: hlo.exponential %[[A]]#1 {kernel.side = array<i64: 0, 0>}
// CHECK: %[[B:.*]]:2 = "hlo.while"(%[[LATE]], %{{.*}})
// CHECK: }) {kernel.side = array<i64: 0, 1>}
// CHECK: hlo.add
// CHECK-NOT: kernel.side
// CHECK: return
// ONE-LABEL: func.func @directions
// The steps of one loop share what those of the other one must not touch.
// PLAN-LABEL: func.func @directions
// PLAN: hlo.compare {{.*}}memory.at = ["arena 0 +[[#SHARED:]]"]
// PLAN: hlo.dot{{.*}}memory.at = ["arena 0 +[[#SHARED]]"]
// PLAN-NOT: arena 0 +[[#SHARED]]"
// PLAN: return
func.func @directions(%x: !t, %y: !t, %w: !w, %start: tensor<i32>) -> !t {
  %zero = "hlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %one = "hlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %n = "hlo.constant"() {value = dense<12> : tensor<i32>} : () -> tensor<i32>
  %a:2 = "hlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %s: !t):
    %p = "hlo.compare"(%i, %n) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "hlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %s: !t):
    %j = "hlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %d = "hlo.dot"(%s, %w) : (!t, !w) -> !t
    %e = "hlo.tanh"(%d) : (!t) -> !t
    "hlo.return"(%j, %e) : (tensor<i32>, !t) -> ()
  }) : (tensor<i32>, !t) -> (tensor<i32>, !t)
  %exp = "hlo.exponential"(%a#1) : (!t) -> !t
  %late = "hlo.negate"(%start) : (tensor<i32>) -> tensor<i32>
  %b:2 = "hlo.while"(%late, %y) ({
  ^bb0(%i: tensor<i32>, %s: !t):
    %p = "hlo.compare"(%i, %n) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "hlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %s: !t):
    %j = "hlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %d = "hlo.dot"(%s, %w) : (!t, !w) -> !t
    %e = "hlo.tanh"(%d) : (!t) -> !t
    "hlo.return"(%j, %e) : (tensor<i32>, !t) -> ()
  }) : (tensor<i32>, !t) -> (tensor<i32>, !t)
  %sum = "hlo.add"(%exp, %b#1) : (!t, !t) -> !t
  return %sum : !t
}

// Loops for one thread each stay on it whatever their kernels could share, and so does what is made for one of them alone.
// CHECK-LABEL: func.func @shares
// CHECK: "hlo.dot"(%arg0, %arg2) {kernel.side = array<i64: [[G:[0-9]+]], 0>
// CHECK: }) {hlo.one_thread, kernel.side = array<i64: [[G]], 0>}
// CHECK: "hlo.dot"(%arg1, %arg2) {kernel.side = array<i64: [[G]], 1>
// CHECK: }) {hlo.one_thread, kernel.side = array<i64: [[G]], 1>}
func.func @shares(%x: tensor<256x256xf32>, %y: tensor<256x256xf32>, %w: tensor<256x256xf32>, %zero: tensor<i32>) -> tensor<256x256xf32> {
  %one = "hlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %n = "hlo.constant"() {value = dense<12> : tensor<i32>} : () -> tensor<i32>
  %dx = "hlo.dot"(%x, %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %a:2 = "hlo.while"(%zero, %dx) ({
  ^bb0(%i: tensor<i32>, %s: tensor<256x256xf32>):
    %p = "hlo.compare"(%i, %n) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "hlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<256x256xf32>):
    %j = "hlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %d = "hlo.dot"(%s, %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    "hlo.return"(%j, %d) : (tensor<i32>, tensor<256x256xf32>) -> ()
  }) {hlo.one_thread} : (tensor<i32>, tensor<256x256xf32>) -> (tensor<i32>, tensor<256x256xf32>)
  %dy = "hlo.dot"(%y, %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  %b:2 = "hlo.while"(%zero, %dy) ({
  ^bb0(%i: tensor<i32>, %s: tensor<256x256xf32>):
    %p = "hlo.compare"(%i, %n) {comparison_direction = #hlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "hlo.return"(%p) : (tensor<i1>) -> ()
  }, {
  ^bb0(%i: tensor<i32>, %s: tensor<256x256xf32>):
    %j = "hlo.add"(%i, %one) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %d = "hlo.dot"(%s, %w) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    "hlo.return"(%j, %d) : (tensor<i32>, tensor<256x256xf32>) -> ()
  }) {hlo.one_thread} : (tensor<i32>, tensor<256x256xf32>) -> (tensor<i32>, tensor<256x256xf32>)
  %sum = "hlo.add"(%a#1, %b#1) : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %sum : tensor<256x256xf32>
}

// Towers: chains of products, each too small for a side.
// CHECK-LABEL: func.func @towers
// CHECK: hlo.dot{{.*}}kernel.side = array<i64: 0, 0>
// CHECK: hlo.dot{{.*}}kernel.side = array<i64: 0, 0>
// CHECK: hlo.dot{{.*}}kernel.side = array<i64: 0, 1>
// CHECK: hlo.dot{{.*}}kernel.side = array<i64: 0, 1>
// CHECK: hlo.multiply
// CHECK-NOT: kernel.side
// CHECK: return
// A value of the first tower that nothing reads any more is still not shared with the second one.
// PLAN-LABEL: func.func @towers
// PLAN: hlo.dot{{.*}}memory.at = ["arena 0 +[[#FIRST:]]"]
// PLAN-NOT: arena 0 +[[#FIRST]]"
// PLAN: return
func.func @towers(%x: tensor<1x64xf32>, %y: tensor<1x64xf32>, %w: !w) -> tensor<1x64xf32> {
  %a = "hlo.dot"(%x, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %c = "hlo.dot"(%y, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %b = "hlo.dot"(%a, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %d = "hlo.dot"(%c, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %r = "hlo.multiply"(%b, %d) : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  return %r : tensor<1x64xf32>
}

// Nothing beside a chain; nothing moves across what may fail.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: kernel.side
// CHECK-LABEL: func.func @checked
// CHECK-NOT: kernel.side
// CHECK: return
func.func @chain(%x: tensor<1x64xf32>, %w: !w) -> tensor<1x64xf32> {
  %a = "hlo.dot"(%x, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %b = "hlo.dot"(%a, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %c = "hlo.dot"(%b, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %d = "hlo.dot"(%c, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  return %d : tensor<1x64xf32>
}
func.func @checked(%x: tensor<1x64xf32>, %y: tensor<1x64xf32>, %w: !w, %ok: tensor<i1>) -> tensor<1x64xf32> {
  %a = "hlo.dot"(%x, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %b = "hlo.dot"(%a, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  hlo.check %ok, "not ok" {node = "n"} : tensor<i1>
  %c = "hlo.dot"(%y, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %d = "hlo.dot"(%c, %w) : (tensor<1x64xf32>, !w) -> tensor<1x64xf32>
  %r = "hlo.multiply"(%b, %d) : (tensor<1x64xf32>, tensor<1x64xf32>) -> tensor<1x64xf32>
  return %r : tensor<1x64xf32>
}
