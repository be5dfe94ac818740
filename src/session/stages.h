#pragma once

#include <vector>

#include "session/plan.h"

namespace tenon {

// Puts the items of a plan into stages, one after the other. Items of one stage do not depend on each other and are
// worth running side by side on so many threads; every other item is a stage of its own. Orders `items` by stage and
// returns the stage of each; nothing, and leaves them as they are, where no two are worth it.
// `is_view`: items that will not run, because their outputs are parts of what others make.
std::vector<int> arrange_stages(std::vector<Plan::Item>& items, const std::vector<bool>& is_view,
                                const Program& program, const ShapeResolver& shapes, int threads);

// Whether steps of so much work, operations and bytes read and written together, are: with a thread for each they take
// no longer than one after the other, each split over all threads, which does little for small ones.
bool is_worth_side_by_side(std::vector<double> work, int threads);

}  // namespace tenon
