#include <braid/braid.h>
#include <stdio.h>

int main(int argc, char **argv) { /* run digits.onnx: what does the model make of an empty image? */
    braid_device *device;
    braid_model *model;
    braid_session *session;
    braid_error err;
    float pixels[64] = {0};
    braid_tensor out = {0}, in = {"image", BRAID_FLOAT32, 4, {1, 1, 8, 8}, pixels, sizeof pixels, 0, 0, NULL};
    if (braid_device_open(NULL, &device, &err) || braid_model_load(argv[argc - 1], NULL, &model, &err) ||
        braid_session_create(&device, 1, model, NULL, &session, &err) ||
        braid_session_run(session, 1, &in, 1, &out, 1, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int i = 0; i < 10; i++) printf("%d: %g\n", i, (double)((float *)out.data)[i]);
}
