#pragma once

#include "session/compiled_model.h"

namespace tenon {

// The model in the file, compiled for these options. Sessions that live at the same time get the same one, as long as
// neither the file nor its external data has changed. Those with operators of the user's own get one for themselves.
std::shared_ptr<const CompiledModel> shared_model(const std::filesystem::path& path, const SessionOptions& options,
                                                  ThreadPool& threads);

}  // namespace tenon
