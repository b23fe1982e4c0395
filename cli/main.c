/* main: the table of commands. */
#include "cli.h"

#include <stdlib.h>

static const cli_command commands[] = {
    {"run", "MODEL --input NAME=FILE ...", "run a model on files, literal or random values",
     "  braid run squeezenet.onnx --input data_0=cat.jpg --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 --top 5\n"
     "  braid run bert.onnx --input ids=1,7,42 --dim batch=1 --dim seq=3 --output-dir out\n"
     "  braid run model.onnx --input x=x.npy --input y=all.npz:y --outputs logits --json\n"
     "  braid run digits.onnx --input 'image=*.png' --top 1\n"
     "  braid run model.onnx --input x=batch.npy -n 64 --output-dir out\n"
     "  braid run model.onnx --random --seed 7 --compare\n",
     cmd_run, RUN, 1, 1},
    {"check", "MODEL [DATASET_DIR]", "say whether a model can run, or compare with expected outputs",
     "  braid check model.onnx\n"
     "  braid check model.onnx test_data_set_0 --rtol 1e-3 --atol 1e-5\n"
     "  braid check model.onnx --no-host\n",
     cmd_check, CHECK, 1, 2},
    {"info", "MODEL", "versions, signature, operators, parameters and plan of a model",
     "  braid info model.onnx\n"
     "  braid info model.onnx --dim batch=1 --device host\n"
     "  braid info model.onnx --graph\n",
     cmd_info, INFO, 1, 1},
    {"graph", "MODEL", "a model as text, its plan as a picture",
     "  braid graph model.onnx\n"
     "  braid graph resnet50.onnx --plan -o plan.svg\n"
     "  braid graph digits.onnx --plan -n 64 -o plan.svg\n",
     cmd_graph, GRAPH, 1, 1},
    {"bench", "MODEL", "measure how long a run takes",
     "  braid bench resnet50.onnx --warmup 5 --runs 100\n"
     "  braid bench yolo.onnx --dim batch=1 --seconds 3 --json\n"
     "  braid bench digits.onnx -n 1,2,4,...,256    (what do N inferences at once cost?)\n"
     "  braid bench clones.onnx --ablate    (what do waves, merging and re-rolling save?)\n"
     "  braid bench resnet50.onnx -n 64 --against resnet50_batch.onnx\n",
     cmd_bench, BENCH, 1, 1},
    {"profile", "MODEL", "measure every step of a run",
     "  braid profile resnet50.onnx\n"
     "  braid profile digits.onnx -n 64\n"
     "  braid profile resnet50.onnx --trace trace.json    (open it in Perfetto)\n"
     "  braid profile resnet50.onnx -n 64 --pipelines --no-cache    (what does the driver compile, and for how "
     "long?)\n",
     cmd_profile, PROFILE, 1, 1},
    {"devices", "", "list the Vulkan devices",
     "  braid devices\n"
     "  braid devices --probe\n"
     "  braid devices --json\n",
     cmd_devices, DEVICES, 0, 0},
    {"ops", "", "list the supported operators",
     "  braid ops\n"
     "  braid ops | grep Conv\n",
     cmd_ops, OPS, 0, 0},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static void print_help(FILE *out) {
    fputs("braid runs ONNX models on any Vulkan device.\n\nusage: braid COMMAND ...\n\n", out);
    for (int i = 0; i < COMMANDS; i++) fprintf(out, "  %-9s %s\n", commands[i].name, commands[i].purpose);
    fputs("\n  braid COMMAND --help   options and examples of a command\n"
          "  braid --version\n\n"
          "exit codes: 0 ok, 1 mismatch, 2 usage, 3 unsupported, 4 any other failure\n",
          out);
}

static const cli_command *find_command(const char *name) {
    for (int i = 0; i < COMMANDS; i++)
        if (!strcmp(commands[i].name, name)) return &commands[i];
    return NULL;
}

static int run_command(const cli_command *command, int argc, char **argv) {
    cli_options options;
    bool help = false;
    braid_error err = {0};
    int code;
    if (args_parse(command, argc, argv, &options, &help, &err) != BRAID_OK) {
        code = cli_fail(&err);
        if (code == CLI_USAGE) fprintf(stderr, "try: braid %s --help\n", command->name);
    } else if (help) {
        args_help(command, stdout);
        code = CLI_OK;
    } else {
        code = command->run(&options);
        cli_progress_end();
    }
    args_free(&options);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fputs("braid: cannot write to standard output\n", stderr);
        return code == CLI_OK ? CLI_FAILURE : code;
    }
    return code;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        const cli_command *command = argc > 2 ? find_command(argv[2]) : NULL;
        if (command)
            args_help(command, stdout);
        else
            print_help(stdout);
        return CLI_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        printf("braid %s\n", braid_version());
        return CLI_OK;
    }
    const cli_command *command = find_command(argv[1]);
    if (!command) {
        fprintf(stderr, "braid: no command '%s'\ntry: braid --help\n", argv[1]);
        return CLI_USAGE;
    }
    return run_command(command, argc - 1, argv + 1);
}
