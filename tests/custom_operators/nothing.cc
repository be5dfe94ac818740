// A shared library that has nothing to do with Tenon.
extern "C" int something_else() { return 1; }
