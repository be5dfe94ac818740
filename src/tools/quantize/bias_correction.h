#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/quantize/calibrate.h"
#include "tools/quantize/plan.h"

namespace tenon::tools {

// The activations whose channels have to be known, with their axis.
std::map<std::string, int, std::less<>> channels_to_correct(const Plan& plan);

// What rounding the weights takes off the outputs of products on average, by number: each weight's error times the
// mean of the channel that it is multiplied with.
std::map<size_t, std::vector<double>> bias_shifts(
    const Plan& plan, const QuantizeOptions& options,
    const std::map<std::string, ChannelStatistics, std::less<>>& channels);

}  // namespace tenon::tools
