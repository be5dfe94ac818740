"""Libraries that stand in for those of CUDA, so that a provider can list its kernels on a machine without: every function that is
asked for is there, and does nothing."""
import collections
import re
import subprocess

# What a provider looks at before it lists its kernels.
SPECIAL = {
    "cudaGetDeviceCount": "int {0}(int* n) {{ *n = 1; return 0; }}",
    "cudaDriverGetVersion": "int {0}(int* n) {{ *n = 13000; return 0; }}",
    "cudaRuntimeGetVersion": "int {0}(int* n) {{ *n = 13000; return 0; }}",
    "cudaMemGetInfo": "int {0}(unsigned long* a, unsigned long* b) {{ *a = *b = 1ul << 34; return 0; }}",
    "__cudaRegisterFatBinary": "void* {0}() {{ static char room[64]; return room; }}",
}


def output_of(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def function(name):
    if re.search("Get(Error|Status)(String|Name)", name):
        return f'const char* {name}() {{ return "stub"; }}'
    return SPECIAL.get(name, "long {0}() {{ return 0; }}").format(name)


def make(library, folder):
    """Puts what `library` needs of NVIDIA into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    needed = re.findall(r"NEEDED.*\[(lib(?:cu|nv)[^\]]*)\]", output_of("readelf", "-d", library))
    functions = collections.defaultdict(set)
    for line in output_of("nm", "-D", "--undefined-only", library).splitlines():
        if found := re.match(r"((?:cu|nv|__cuda)\w+)(?:@(.*))?$", line.split()[-1]):
            functions[found[2]].add(found[1])
    for name in needed:
        source, versions = folder / "stub.c", folder / "stub.map"
        source.write_text("\n".join(map(function, sorted(functions.get(name) or functions[None]))) + "\n")
        versions.write_text(f"{name} {{ global: *; }};\n")
        options = [f"-Wl,--version-script={versions}"] if name in functions else []
        subprocess.run(["cc", "-w", "-shared", "-fPIC", "-fno-builtin", "-o", folder / name, source, f"-Wl,-soname,{name}", *options],
                       check=True)
