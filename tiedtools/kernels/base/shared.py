"""Kernels whose machine code all other kernels share, because a copy in each caller takes long to compile."""

from typing import NamedTuple

import llvmlite.binding as llvm
from numba.core import cgutils, types

from tiedtools.kernels.base import inner
from tiedtools.kernels.base.jit import AS_EXPECTED

SHARED = {}  # symbol -> (kernel, argument types)
PROVIDED = set()  # symbols that the dynamic linker knows


class Provide(NamedTuple):
    """Compile a shared kernel or load it from the cache, for the linker. Numba calls this before it loads a caller."""

    symbol: str

    def __call__(self):
        if self.symbol not in PROVIDED:
            kernel, kinds = SHARED[self.symbol]
            kernel.compile(kinds)
            compiled = kernel.overloads[kinds]
            address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
            llvm.add_symbol(self.symbol, address)
            PROVIDED.add(self.symbol)


def share(kernel, *kinds):
    """Share the machine code of a kernel without result for arguments of these types, known before any is compiled."""
    SHARED[symbol(kernel, kinds)] = kernel, kinds


def symbol(kernel, kinds):
    """Return the name for the linker, the same in all processes."""
    return f"tiedtools.{kernel.__module__}.{kernel.__name__}({', '.join(map(str, kinds))})"


def call(context, builder, kernel, kinds, args):
    """Emit a call of a kernel, shared for these types or not, in the implementation of an intrinsic."""
    if not AS_EXPECTED or symbol(kernel, kinds) not in SHARED:
        return inner.call(context, builder, kernel, kinds, args)
    provide = Provide(symbol(kernel, kinds))
    provide()
    context.active_code_library._reload_init.add(provide)
    kind = context.call_conv.get_function_type(types.none, kinds)
    function = cgutils.get_or_insert_function(builder.module, kind, provide.symbol)
    context.call_conv.call_function(builder, function, types.none, kinds, args)
    return context.get_dummy_value()
