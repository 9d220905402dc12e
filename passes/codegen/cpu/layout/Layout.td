// How the CPU's backend lays out constant right operands and filters, and which algorithm reads them so: the attributes that its
// packing passes put on products and convolutions as `layout`.
#ifndef LATHE_PASSES_CODEGEN_CPU_LAYOUT_TD
#define LATHE_PASSES_CODEGEN_CPU_LAYOUT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "dialects/kernel/KernelInterfaces.td"

def Cpu_Dialect : Dialect {
  let name = "cpu";
  let cppNamespace = "::lathe::cpu";
  let summary = "layouts of packed operands";
  let useDefaultAttributePrinterParser = 1;
}

class Cpu_Layout<string name, string mnemonic_>
    : AttrDef<Cpu_Dialect, name, [DeclareAttrInterfaceMethods<Kernel_LayoutAttrInterface>]> {
  let mnemonic = mnemonic_;
  let assemblyFormat = "`<` struct(params) `>`";
}

def Cpu_Panels : Cpu_Layout<"Panels", "panels"> {
  let summary = "columns side by side for each step of the sum";
  let description = [{
    A right operand is `[batch..., ceil(N / columns), K, columns]`, the last panel padded by zeros; a filter is
    `[groups, ceil(oc / groups / columns), taps * ic / groups, columns]`.

    With `group` = G, G steps of the sum lie side by side, `[ceil(K / G), columns, G]` under the type of `[K, columns]` with K padded
    by zeros (filters: each run of elements that lie together in the input). Sums of vectors' G lanes are one then, or the
    elements are narrow integers. Where an instruction wants the other sign than bytes of the left operand have (`vpdpbusd` none, `sdot` one),
    128 is added to or taken from them, and the four steps before a panel's first take that back. Operands rounded to bf16 lie in pairs, `[depth / 2, 2 * columns]`, the depth of each run padded by zeros.
  }];
  let parameters = (ins "int64_t":$columns, DefaultValuedParameter<"int64_t", "1">:$group);
}

def Cpu_Tiles : Cpu_Layout<"Tiles", "tiles"> {
  let summary = "panels that tile registers read";
  let description = [{
    A right operand is `[batch..., ceil(N / columns), depth / group, group * columns]`, a filter has its groups in front. `group` = 2 for
    operands rounded to bf16 (the op is marked so), 4 for bytes, signed on the right, with sums in i32. The depth is that of runs of
    elements that lie together on the left, each padded by zeros to whole steps of at most 64 bytes.
  }];
  let parameters = (ins "int64_t":$columns, "int64_t":$group);
}

def Cpu_Strassen : Cpu_Layout<"Strassen", "strassen"> {
  let summary = "panels of sums for one level of Strassen's algorithm";
  let description = [{
    For products of static f32 operands, one matrix on the right, an odd K padded by zeros. An infinity or a NaN of the left operand
    reaches the row beside its own, 2i and 2i + 1.
  }];
  let parameters = (ins "int64_t":$columns);
}

def Cpu_Winograd : Cpu_Layout<"Winograd", "winograd"> {
  let summary = "a filter transformed for Winograd's algorithm";
  let description = [{
    `tile` pixels at once along each of the two spatial dimensions with several taps r, from tile + r - 1 points (4, 6 or 8): strides of
    one, no dilated input, no groups, sums of f32 (the input may be bf16). The filter is `[panels / Q, points, Q, ic, columns]`, where
    points are those of both dimensions multiplied, panels = ceil(oc / columns) and Q of them are one unit of work. In an op marked
    `bf16` the transformed input and filter are rounded, and the filter is `[panels / Q, points, Q, ic / 2, 2 * columns]`. So it is in i16, of
    ceil(ic / 2) pairs, where sums of i32 are made of bytes; tiles then have no more than four points a direction.
  }];
  let parameters = (ins "int64_t":$tile, "int64_t":$columns);
}

def Cpu_Spread : Cpu_Layout<"Spread", "spread"> {
  let summary = "the taps of a row as columns beside each other";
  let description = [{
    For results of few channels: the filter is `[1, 1, other taps * ic, columns]` with tap x of the last dimension and channel c
    at column x * oc + c; stride one along that dimension, no groups.
  }];
  let parameters = (ins "int64_t":$columns);
}

#endif
