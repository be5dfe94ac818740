// Tenon's public interface.
#pragma once

#include "tenon/compile.h"
#include "tenon/custom_operator.h"
#include "tenon/device.h"
#include "tenon/dim.h"
#include "tenon/element_type.h"
#include "tenon/error.h"
#include "tenon/optimization.h"
#include "tenon/precision.h"
#include "tenon/scalar.h"
#include "tenon/session.h"
#include "tenon/session_config.h"
#include "tenon/shape.h"
#include "tenon/tensor.h"
#include "tenon/value.h"
#include "tenon/version.h"
