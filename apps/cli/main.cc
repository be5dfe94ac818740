#include "tenon/tenon.h"

int main() { return 0; }
