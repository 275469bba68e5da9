# Built by npm where it finds this file: the addon, against the installed library.
{
  "targets": [
    {
      "target_name": "shmlimit",
      "sources": [
        "src/addon.c", "src/segment.c", "src/limiter.c",
        "src/hosts.c", "src/gate.c", "src/ask.c", "src/pending.c", "src/request.c", "src/keys.c", "src/answer.c"
      ],
      "defines": ["_GNU_SOURCE"],
      "cflags_c": ["-std=c11", "-Wall", "-Wextra", "-fvisibility=hidden", "<!@(pkg-config --cflags shmlimit-gate)"],
      "libraries": ["<!@(pkg-config --libs shmlimit-gate)"],
      "ldflags": ["-Wl,-z,nodelete"]
    }
  ]
}
