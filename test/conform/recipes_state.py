"""Recipes for operations on variables and arrays; see recipes.py."""
import numpy as np
import tensorflow.compat.v1 as tf

from recipes import COMPLEX, FLOATS, INTEGERS, WIDE, Feeds, outputs_of, raw, recipe, values


def variables(count, shape, dtype, resource, low=0.5, high=2.0):
    """Handles (or references) and readers of variables, and the first step, which gives them values."""
    made = [tf.Variable(values(shape, dtype, i, low, high), use_resource=resource) for i in range(count)]
    handles = [v.handle if resource else v._ref() for v in made]
    start = {"targets": [v.initializer for v in made]}
    read = {"fetches": [v.read_value() for v in made]}
    return handles, start, read


def apply(op, types, slots, *more, sparse=False, **attrs):
    """An optimizer's step: variables `slots`, then fixed or fed arguments (NAME, value), a gradient among them."""
    @recipe(op, types)
    def build(dtype):
        resource = op.startswith("Resource")
        shape = (4, 3)
        handles, start, read = variables(len(slots), shape, dtype, resource)
        feeds, kwargs = Feeds(), dict(zip(slots, handles))
        for seed, (name, what) in enumerate(more):
            if name in ("grad", "delta", "m_t"):
                kwargs[name] = feeds.add(values((2, 3) if sparse else shape, dtype, seed))
            else:
                kwargs[name] = tf.constant(what, tf.int64) if name == "global_step" else tf.constant(what, dtype)
        if sparse:
            kwargs["indices"] = tf.constant([3, 1])
        step = getattr(raw, op)(**kwargs, **attrs)
        update = {"feeds": feeds}
        if resource:
            update["targets"] = [step]
        else:
            update["fetches"] = outputs_of(step)
        return [start, update, update, read]


GRAD = ("grad", None)
for prefix in ("", "Resource"):
    apply(prefix + "ApplyAdaMax", FLOATS, ("var", "m", "v"), ("beta1_power", 0.9), ("lr", 0.01), ("beta1", 0.9), ("beta2", 0.99),
          ("epsilon", 1e-3), GRAD)
    apply(prefix + "ApplyAddSign", FLOATS, ("var", "m"), ("lr", 0.1), ("alpha", 1.0), ("sign_decay", 0.9), ("beta", 0.9), GRAD)
    apply(prefix + "ApplyPowerSign", FLOATS, ("var", "m"), ("lr", 0.1), ("logbase", 1.0), ("sign_decay", 0.9), ("beta", 0.9), GRAD)
    apply(prefix + "ApplyAdagradV2", FLOATS, ("var", "accum"), ("lr", 0.1), ("epsilon", 1e-3), GRAD)
    apply(prefix + "SparseApplyAdagradV2", FLOATS, ("var", "accum"), ("lr", 0.1), ("epsilon", 1e-3), GRAD, sparse=True)
apply("ResourceApplyAdamWithAmsgrad", FLOATS, ("var", "m", "v", "vhat"), ("beta1_power", 0.9), ("beta2_power", 0.99), ("lr", 0.01),
      ("beta1", 0.9), ("beta2", 0.99), ("epsilon", 1e-3), GRAD)
apply("ResourceApplyKerasMomentum", FLOATS, ("var", "accum"), ("lr", 0.1), GRAD, ("momentum", 0.9), use_nesterov=True)
apply("ResourceSparseApplyKerasMomentum", FLOATS, ("var", "accum"), ("lr", 0.1), GRAD, ("momentum", 0.9), sparse=True)
apply("ApplyAdadelta", FLOATS, ("var", "accum", "accum_update"), ("lr", 0.1), ("rho", 0.9), ("epsilon", 1e-2), GRAD)
apply("SparseApplyAdadelta", FLOATS, ("var", "accum", "accum_update"), ("lr", 0.1), ("rho", 0.9), ("epsilon", 1e-2), GRAD, sparse=True)
DUAL = ("var", "gradient_accumulator", "gradient_squared_accumulator")
apply("ApplyAdagradDA", WIDE, DUAL, GRAD, ("lr", 0.1), ("l1", 0.01), ("l2", 0.01), ("global_step", 3))
apply("SparseApplyAdagradDA", WIDE, DUAL, GRAD, ("lr", 0.1), ("l1", 0.01), ("l2", 0.01), ("global_step", 3), sparse=True)
for prefix, sparse in (("", False), ("Sparse", True)):
    apply(prefix + "ApplyCenteredRMSProp", FLOATS, ("var", "mg", "ms", "mom"), ("lr", 0.1), ("rho", 0.9), ("momentum", 0.5),
          ("epsilon", 5.0), GRAD, sparse=sparse)
    apply(prefix + "ApplyRMSProp", FLOATS, ("var", "ms", "mom"), ("lr", 0.1), ("rho", 0.9), ("momentum", 0.5), ("epsilon", 1e-2), GRAD,
          sparse=sparse)
    apply(prefix + "ApplyFtrlV2", FLOATS, ("var", "accum", "linear"), GRAD, ("lr", 0.1), ("l1", 0.01), ("l2", 0.01),
          ("l2_shrinkage", 0.1), ("lr_power", -0.5), sparse=sparse)
    apply(prefix + "ApplyMomentum", FLOATS, ("var", "accum"), ("lr", 0.1), GRAD, ("momentum", 0.9), sparse=sparse)
    apply(prefix + "ApplyProximalAdagrad", FLOATS, ("var", "accum"), ("lr", 0.1), ("l1", 0.01), ("l2", 0.01), GRAD, sparse=sparse)
apply("ApplyProximalGradientDescent", FLOATS, ("var",), ("alpha", 0.1), ("l1", 0.01), ("l2", 0.01), ("delta", None))
apply("SparseApplyProximalGradientDescent", FLOATS, ("var",), ("alpha", 0.1), ("l1", 0.01), ("l2", 0.01), GRAD, sparse=True)


def scatter(op, types, indices, low=1.0):
    @recipe(op, types)
    def build(dtype):
        resource = op.startswith("Resource")
        (handle,), start, read = variables(1, (5, 3), dtype, resource)
        feeds = Feeds()
        name = "updates"
        kwargs = {name: feeds.add(values((len(indices), 3), dtype, 3, low, 4))}
        step = getattr(raw, op)(ref=handle, indices=tf.constant(indices), **kwargs)
        done = {"feeds": feeds, "targets": [step]} if resource else {"feeds": feeds, "fetches": outputs_of(step)}
        return [start, done, read]


for name in ("Div", "Max", "Min", "Mul", "Sub", "Update"):
    scatter("Scatter" + name, FLOATS + ["int32", "int64"], [4, 0, 2])
for name in ("Add", "Max", "Min", "Sub", "Update"):
    scatter("ScatterNd" + name, FLOATS + ["int32", "int64"], [[4], [0], [2]])
for name in ("Max", "Min"):
    scatter("ResourceScatterNd" + name, FLOATS + ["int32", "int64"], [[4], [0], [2]])


@recipe("StridedSliceAssign", FLOATS + INTEGERS + COMPLEX)
def strided_slice_assign(dtype):
    (handle,), start, read = variables(1, (4, 5), dtype, False)
    feeds = Feeds()
    made = raw.StridedSliceAssign(ref=handle, begin=tf.constant([1, 4]), end=tf.constant([3, 0]), strides=tf.constant([1, -2]),
                                  value=feeds.add(values((2, 2), dtype, 3)))
    return [start, {"feeds": feeds, "fetches": [made]}, read]


@recipe("RefIdentity", FLOATS + ["int32"])
def ref_identity(dtype):
    (handle,), start, _ = variables(1, (4,), dtype, False)
    return [start, {"fetches": [raw.RefIdentity(input=handle)]}]


@recipe("CountUpTo", ["int32", "int64"])
def count_up_to(dtype):
    v = tf.Variable(tf.constant(3, dtype), use_resource=False)
    count = {"fetches": [raw.CountUpTo(ref=v._ref(), limit=9)]}
    return [{"targets": [v.initializer]}, count, count, {"fetches": [v.read_value()]}]


@recipe("DestroyResourceOp", FLOATS)
def destroy_resource(dtype):
    v = tf.Variable(values((3,), dtype), use_resource=True)
    start = {"targets": [v.initializer]}
    return [start, {"fetches": [v.read_value()]}, {"targets": [raw.DestroyResourceOp(resource=v.handle)]}, start,
            {"fetches": [v.read_value()]}]


@recipe("TensorArrayCloseV3", FLOATS)
def array_close(dtype):
    feeds = Feeds()
    handle, flow = raw.TensorArrayV3(size=tf.constant(3), dtype=dtype)
    flow = raw.TensorArrayWriteV3(handle=handle, index=tf.constant(1), value=feeds.add(values((2, 3), dtype)), flow_in=flow)
    read = raw.TensorArrayReadV3(handle=handle, index=tf.constant(1), flow_in=flow, dtype=dtype)
    with tf.control_dependencies([read]):
        return [{"feeds": feeds, "fetches": [read], "targets": [raw.TensorArrayCloseV3(handle=handle)]}]


@recipe("StackClose", FLOATS)
def stack_close(dtype):
    handle = raw.Stack(elem_type=dtype, stack_name="s")
    feeds = Feeds()
    push = raw.StackPush(handle=handle, elem=feeds.add(values((3,), dtype)))
    with tf.control_dependencies([push]):
        pop = raw.StackPop(handle=handle, elem_type=dtype)
    with tf.control_dependencies([pop]):
        return [{"feeds": feeds, "fetches": [pop], "targets": [raw.StackClose(handle=handle)]}]


@recipe("StackCloseV2", FLOATS)
def stack_close2(dtype):
    handle = raw.StackV2(max_size=tf.constant(4), elem_type=dtype, stack_name="s")
    feeds = Feeds()
    push = raw.StackPushV2(handle=handle, elem=feeds.add(values((3,), dtype)))
    with tf.control_dependencies([push]):
        pop = raw.StackPopV2(handle=handle, elem_type=dtype)
    with tf.control_dependencies([pop]):
        return [{"feeds": feeds, "fetches": [pop], "targets": [raw.StackCloseV2(handle=handle)]}]
