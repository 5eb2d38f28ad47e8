"""Numba's compiler without the passes that kernels do not need: these take a tenth of its time."""

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager

# For `with` statements, closures, inlining on request, `literally`, array expressions, and, in ir_legalization, the
# deletion of variables, which matters only for reference counts.
UNUSED = set(
    """
with_lifting inline_closure_likes inline_inlinables inline_overloads find_literally literal_unroll literal_propagation
nopython_rewrites nopython_supported_feature_validation ir_legalization annotate_types
""".split()
)


class Compiler(CompilerBase):
    """Numba's compiler, with the passes that kernels need."""

    manager = None

    def define_pipelines(self):
        if not Compiler.manager:
            passes = DefaultPassBuilder.define_nopython_pipeline(self.state).passes
            Compiler.manager = PassManager("kernel")
            Compiler.manager.passes = [(step, about) for step, about in passes if step.name() not in UNUSED]
            Compiler.manager.finalize()
        return [Compiler.manager]
