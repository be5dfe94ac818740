"""magika tells what is in files, by their contents."""
from magika import Magika

PYTHON = b"import os\n\n\ndef main():\n    for name in os.listdir('.'):\n        print(name)\n\n\nif __name__ == '__main__':\n    main()\n"
CONTENTS = {
    "python": PYTHON,
    "c": b"#include <stdio.h>\n\nint main(void) {\n  printf(\"%d\\n\", 42);\n  return 0;\n}\n" * 3,
    "html": b"<!DOCTYPE html>\n<html><head><title>A page</title></head><body><p>Some text</p></body></html>\n",
    "json": b'{"name": "tenon", "numbers": [1, 2, 3], "nested": {"a": null, "b": true}}\n',
    "markdown": b"# A title\n\nSome *text* and a [link](https://example.com).\n\n- one\n- two\n\n```sh\nls\n```\n",
    "csv": b"id,name,price\n1,apple,0.5\n2,pear,0.75\n3,plum,0.25\n",
    "zip": b"PK\x03\x04\x14\x00\x00\x00\x08\x00" + bytes(range(256)) * 8,
    "zeros": bytes(4096),
}


def results():
    reader, found = Magika(), {}
    for name, content in CONTENTS.items():
        result = reader.identify_bytes(content)
        found[name] = {"label": str(result.output.label), "model": str(result.dl.label), "score": float(result.score)}
    assert found["python"]["label"] == "python" and found["html"]["label"] == "html"
    return found
