"""Kernels whose machine code all other kernels share, because a copy in each caller takes long to compile."""

import importlib
from typing import NamedTuple

import llvmlite.binding as llvm
from numba.core import cgutils, types
from numba.extending import intrinsic

PROVIDED = set()  # symbols that the dynamic linker knows


class Provide(NamedTuple):
    """Compile a shared kernel or load it from the cache, for the linker. Numba calls this before it loads a caller."""

    module: str
    name: str
    kinds: tuple

    @property
    def symbol(self):
        """The name for the linker, the same in all processes."""
        return f"tiedtools.{self.module}.{self.name}({', '.join(map(str, self.kinds))})"

    def __call__(self):
        if self.symbol not in PROVIDED:
            kernel = getattr(importlib.import_module(self.module), self.name)
            kernel.compile(self.kinds)
            compiled = kernel.overloads[self.kinds]
            address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
            llvm.add_symbol(self.symbol, address)
            PROVIDED.add(self.symbol)


def call(context, builder, kernel, kinds, args):
    """Emit a call of a shared kernel without result, in the implementation of an intrinsic."""
    provide = Provide(kernel.__module__, kernel.__name__, tuple(kinds))
    provide()
    context.active_code_library._reload_init.add(provide)
    kind = context.call_conv.get_function_type(types.none, kinds)
    function = cgutils.get_or_insert_function(builder.module, kind, provide.symbol)
    context.call_conv.call_function(builder, function, types.none, kinds, args)
    return context.get_dummy_value()


def caller(kernel_of, emit=call):
    """Return a function that calls a kernel without result from other kernels.

    kernel_of  function that returns the kernel for the types of its arguments
    emit       `call`, or inner.call for a kernel that is not shared
    """

    @intrinsic
    def call_kernel(typingctx, *args):
        kinds = tuple(map(types.unliteral, args))

        def codegen(context, builder, signature, args):
            emit(context, builder, kernel_of(kinds), kinds, cgutils.unpack_tuple(builder, args[0]))
            return context.get_dummy_value()

        return types.void(types.StarArgTuple.from_types(kinds)), codegen

    return call_kernel
