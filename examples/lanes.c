#include <braid/braid.h>
#include <stdio.h>

enum { LANES = 64 };

int main(int argc, char **argv) { /* lanes digits.onnx 64.gray: 64 images in one run, though the file's batch is 1 */
    static unsigned char gray[LANES][64];
    static float pixels[LANES][64], logits[LANES][10];
    braid_device *device;
    braid_model *model;
    braid_session *session;
    braid_error err;
    braid_session_options options = {.size = sizeof options, .lanes_max = LANES};
    braid_tensor in = {.name = "image", .type = BRAID_FLOAT32, .rank = 4, .dims = {1, 1, 8, 8}, /* of one lane */
                       .data = pixels, .bytes = sizeof pixels};
    braid_tensor out = {.name = "logits", .data = logits, .bytes = sizeof logits};
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (!file || fread(gray, sizeof gray, 1, file) != 1) return fprintf(stderr, "lanes MODEL IMAGES\n"), 2;
    for (int i = 0; i < LANES * 64; i++) pixels[i / 64][i % 64] = (float)gray[i / 64][i % 64] / 255;
    if (braid_device_open(NULL, &device, &err) || braid_model_load(argv[1], NULL, &model, &err) ||
        braid_session_create(&device, 1, model, &options, &session, &err) ||
        braid_session_run(session, LANES, &in, 1, &out, 1, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int lane = 0; lane < LANES; lane++) {
        int digit = 0;
        for (int i = 1; i < 10; i++) digit = logits[lane][i] > logits[lane][digit] ? i : digit;
        printf("%d%c", digit, lane % 16 == 15 ? '\n' : ' ');
    }
}
