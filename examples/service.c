#include <braid/braid.h>
#include <pthread.h>
#include <stdio.h>

/* service digits.onnx 64.gray: clients come when they like; who waits goes into the next run, a lane for each */

enum { CLIENTS = 64, LANES = 16 };

typedef struct request {
    float pixels[64], logits[10];
    braid_status status;
    bool done;
} request;

static request requests[CLIENTS], *queue[CLIENTS];
static size_t waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *client(void *user) {
    request *r = user;
    pthread_mutex_lock(&lock);
    queue[waiting++] = r;
    pthread_cond_broadcast(&changed);
    while (!r->done) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static const braid_tensor image = {.name = "image", .type = BRAID_FLOAT32, .rank = 4, .dims = {1, 1, 8, 8},
                                   .bytes = sizeof requests[0].pixels, .flags = BRAID_TENSOR_LANES};

static void serve(braid_session *session, request **r, size_t lanes) {
    void *in[LANES], *out[LANES];
    for (size_t i = 0; i < lanes; i++) in[i] = r[i]->pixels, out[i] = r[i]->logits;
    braid_tensor y = {.name = "logits", .data = out, .bytes = sizeof r[0]->logits, .flags = BRAID_TENSOR_LANES};
    braid_tensor x = image;
    braid_error err;
    x.data = in; /* a buffer for each lane */
    if (braid_session_run(session, lanes, &x, 1, &y, 1, &err)) fprintf(stderr, "%s\n", err.message);
    for (size_t i = 0; i < lanes; i++) r[i]->status = braid_session_lane_status(session, i); /* one may fail alone */
}

int main(int argc, char **argv) {
    unsigned char gray[CLIENTS][64];
    pthread_t threads[CLIENTS];
    int well = 0;
    braid_device *device;
    braid_model *model;
    braid_session *session;
    braid_error err;
    braid_session_options options = {.size = sizeof options, .lanes_max = LANES};
    FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
    if (!file || fread(gray, sizeof gray, 1, file) != 1) return fprintf(stderr, "service MODEL IMAGES\n"), 2;
    if (braid_device_open(NULL, &device, &err) || braid_model_load(argv[1], NULL, &model, &err) ||
        braid_session_create(&device, 1, model, &options, &session, &err) ||
        braid_session_plan(session, LANES, &image, 1, &err)) /* now, so that no client waits for it */
        return fprintf(stderr, "%s\n", err.message), 1;
    for (int i = 0; i < CLIENTS * 64; i++) requests[i / 64].pixels[i % 64] = (float)gray[i / 64][i % 64] / 255;
    for (int i = 0; i < CLIENTS; i++) pthread_create(&threads[i], NULL, client, &requests[i]);
    for (size_t served = 0, n; served < CLIENTS; served += n) {
        request *now[LANES];
        pthread_mutex_lock(&lock);
        while (!waiting) pthread_cond_wait(&changed, &lock);
        for (n = 0; n < LANES && waiting; n++) now[n] = queue[--waiting];
        pthread_mutex_unlock(&lock);
        serve(session, now, n);
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < n; i++) now[i]->done = true;
        pthread_mutex_unlock(&lock);
        pthread_cond_broadcast(&changed);
    }
    for (int i = 0; i < CLIENTS; i++) pthread_join(threads[i], NULL), well += requests[i].status == BRAID_OK;
    printf("%d of %d served\n", well, CLIENTS);
    braid_session_free(session);
    braid_model_free(model);
    braid_device_close(device);
}
