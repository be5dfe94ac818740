#include "tools/constant_evaluator.h"

#include "providers/cpu/cpu_provider.h"
#include "session/evaluate.h"

namespace tenon::tools {

passes::Evaluator constant_evaluator() {
  return [](const ir::Node& node) {
    static const CpuProvider cpu;
    const Provider* providers[] = {&cpu};
    return evaluate(node, providers, *ThreadPool::shared(), system_allocator());
  };
}

}  // namespace tenon::tools
