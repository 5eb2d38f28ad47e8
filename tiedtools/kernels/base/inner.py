"""Versions of kernels for calls by other kernels, which are not compiled to machine code by themselves.

Numba optimizes each function, turns it into machine code, and then repeats both for each kernel that it is linked into.
A version that only kernels call needs neither. Doing neither halves the time of a first run. It also makes runs
reproducible: the dynamic linker could prefer the separate machine code of a function to a kernel's own copy, which may
round differently, in the process that compiles both, but not in one that loads the kernel from the cache.
"""

import llvmlite.binding as llvm
from numba.core import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

# For `with` statements, closures, inlining on request, `literally`, array expressions, and, in ir_legalization, the
# deletion of variables, which matters only for reference counts.
UNUSED = (
    "with_lifting inline_closure_likes inline_inlinables inline_overloads find_literally literal_unroll"
    " literal_propagation nopython_rewrites nopython_supported_feature_validation ir_legalization annotate_types"
).split()


class WideLibrary(JITCodeLibrary):
    """Code with vectors of 512 bits where the CPU has them; LLVM would vectorize loops with half for most Intel CPUs.

    It does so because wide vectors can lower the clock rate; the products next to these loops have them anyway.
    """

    def add_ir_module(self, ir_module):
        for function in ir_module.functions:
            set.add(function.attributes, '"prefer-vector-width"="512"')  # llvmlite's own `add` knows no such attributes
        super().add_ir_module(ir_module)


class Compiler(CompilerBase):
    """Numba's compiler, without the passes that kernels do not need: these take a tenth of its time."""

    manager, library_class = None, WideLibrary

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        library = library or self.library_class(targetctx.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)

    def define_pipelines(self):
        if not Compiler.manager:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state).passes
            Compiler.manager = PassManager("kernel")
            Compiler.manager.passes = [(step, about) for step, about in passes if step.name() not in UNUSED]
            Compiler.manager.finalize()
        return [Compiler.manager]


class Delegate:
    """An object with the attributes of another one, except those that a subclass defines."""

    def __init__(self, other):
        self.other = other

    def __getattr__(self, name):
        return getattr(self.other, name)


class Codegen(Delegate):
    """A code generator for functions that are never loaded, so their environments have no address."""

    def set_env(self, name, env):
        pass


class Library(WideLibrary):
    """Code that is only linked into callers, so it is neither optimized nor turned into machine code."""

    @property
    def codegen(self):
        return Codegen(self._codegen)

    def finalize(self):
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()  # collects what callers have to load, for the cache
        return 0

    def serialize_using_object_code(self):
        return self.name, self._get_module_for_linking().as_bitcode()


class InnerCompiler(Compiler):
    """Numba's compiler, with a Library as its result."""

    library_class = Library


class Loading(Delegate):
    """A target context whose code generator restores a Library."""

    def codegen(self):
        return self

    def unserialize_library(self, data):
        name, bitcode = data
        library = Library(self.other.codegen(), name)
        library._final_module = library._shared_module = llvm.parse_bitcode(bitcode)
        library._finalized = True
        return library


def rebuild(implementation, target_context, data):
    """Restore a cached version with Numba's implementation of the cache."""
    result = implementation.rebuild(Loading(target_context), data)
    result.library._reload_init.update(result.reload_init)
    return result._replace(target_context=target_context)


def call(context, builder, kernel, kinds, args):
    """Emit a call of a kernel, in the implementation of an intrinsic."""
    kind = types.Dispatcher(kernel)
    return context.get_function(kind, kind.get_call_type(context.typing_context, kinds, {}))(builder, args)
