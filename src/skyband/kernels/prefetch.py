"""A hint to the processor: memory that a kernel is about to use. It changes no result, only when the wait begins."""

from __future__ import annotations

from typing import Any

from skyband.kernels.compile import numba


def _generator(typing: Any, array: Any, place: Any, offset: Any) -> Any:
    """The type of `prefetch`, and what makes its instruction."""
    from llvmlite import ir

    word, number = ir.IntType(64), ir.IntType(32)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        where = builder.add(builder.ptrtoint(array.data, word), args[2])
        where = builder.add(where, builder.mul(args[1], builder.extract_value(array.strides, 0)))
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        writes, caches, data = number(1), number(3), number(1)  # it is written too, and wanted in all caches
        builder.call(hint, [builder.inttoptr(where, pointer), writes, caches, data])
        return context.get_dummy_value()

    types = numba.core.types
    return types.void(array, types.int64, types.int64), generate


def prefetch(array: Any, place: Any, offset: Any) -> None:
    """Fetch the byte `offset` of an array's entry `place`, by its first index; it need not be within its bounds."""


if not numba.config.DISABLE_JIT:  # Python has no such hint
    prefetch = numba.extending.intrinsic(_generator)
