/*
 * products.h: every distinct product of four networks at batch 1, with how often it occurs. X(kind, ...):
 *   CONV(network, times, channels, height and width, outputs, kernel, stride, pad, groups)
 *   MATMUL(network, times, batch, m, k, n, transposed B)
 */
#define PRODUCTS(CONV, MATMUL)                    \
    CONV(squeezenet, 1, 3, 224, 64, 3, 2, 0, 1)   \
    CONV(squeezenet, 1, 64, 55, 16, 1, 1, 0, 1)   \
    CONV(squeezenet, 2, 16, 55, 64, 1, 1, 0, 1)   \
    CONV(squeezenet, 2, 16, 55, 64, 3, 1, 1, 1)   \
    CONV(squeezenet, 1, 128, 55, 16, 1, 1, 0, 1)  \
    CONV(squeezenet, 1, 128, 27, 32, 1, 1, 0, 1)  \
    CONV(squeezenet, 2, 32, 27, 128, 1, 1, 0, 1)  \
    CONV(squeezenet, 2, 32, 27, 128, 3, 1, 1, 1)  \
    CONV(squeezenet, 1, 256, 27, 32, 1, 1, 0, 1)  \
    CONV(squeezenet, 1, 256, 13, 48, 1, 1, 0, 1)  \
    CONV(squeezenet, 2, 48, 13, 192, 1, 1, 0, 1)  \
    CONV(squeezenet, 2, 48, 13, 192, 3, 1, 1, 1)  \
    CONV(squeezenet, 1, 384, 13, 48, 1, 1, 0, 1)  \
    CONV(squeezenet, 1, 384, 13, 64, 1, 1, 0, 1)  \
    CONV(squeezenet, 2, 64, 13, 256, 1, 1, 0, 1)  \
    CONV(squeezenet, 2, 64, 13, 256, 3, 1, 1, 1)  \
    CONV(squeezenet, 1, 512, 13, 64, 1, 1, 0, 1)  \
    CONV(squeezenet, 1, 512, 13, 1000, 1, 1, 0, 1) \
    CONV(mobilenet, 1, 3, 224, 32, 3, 2, 1, 1)    \
    CONV(mobilenet, 1, 32, 112, 32, 3, 1, 1, 32)  \
    CONV(mobilenet, 1, 32, 112, 16, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 16, 112, 96, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 96, 112, 96, 3, 2, 1, 96)  \
    CONV(mobilenet, 1, 96, 56, 24, 1, 1, 0, 1)    \
    CONV(mobilenet, 2, 24, 56, 144, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 144, 56, 144, 3, 1, 1, 144) \
    CONV(mobilenet, 1, 144, 56, 24, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 144, 56, 144, 3, 2, 1, 144) \
    CONV(mobilenet, 1, 144, 28, 32, 1, 1, 0, 1)   \
    CONV(mobilenet, 3, 32, 28, 192, 1, 1, 0, 1)   \
    CONV(mobilenet, 2, 192, 28, 192, 3, 1, 1, 192) \
    CONV(mobilenet, 2, 192, 28, 32, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 192, 28, 192, 3, 2, 1, 192) \
    CONV(mobilenet, 1, 192, 14, 64, 1, 1, 0, 1)   \
    CONV(mobilenet, 4, 64, 14, 384, 1, 1, 0, 1)   \
    CONV(mobilenet, 4, 384, 14, 384, 3, 1, 1, 384) \
    CONV(mobilenet, 3, 384, 14, 64, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 384, 14, 96, 1, 1, 0, 1)   \
    CONV(mobilenet, 3, 96, 14, 576, 1, 1, 0, 1)   \
    CONV(mobilenet, 2, 576, 14, 576, 3, 1, 1, 576) \
    CONV(mobilenet, 2, 576, 14, 96, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 576, 14, 576, 3, 2, 1, 576) \
    CONV(mobilenet, 1, 576, 7, 160, 1, 1, 0, 1)   \
    CONV(mobilenet, 3, 160, 7, 960, 1, 1, 0, 1)   \
    CONV(mobilenet, 3, 960, 7, 960, 3, 1, 1, 960) \
    CONV(mobilenet, 2, 960, 7, 160, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 960, 7, 320, 1, 1, 0, 1)   \
    CONV(mobilenet, 1, 320, 7, 1280, 1, 1, 0, 1)  \
    MATMUL(mobilenet, 1, 1, 1, 1280, 1000, 1)     \
    CONV(resnet50, 1, 3, 224, 64, 7, 2, 3, 1)     \
    CONV(resnet50, 1, 64, 56, 64, 1, 1, 0, 1)     \
    CONV(resnet50, 3, 64, 56, 64, 3, 1, 1, 1)     \
    CONV(resnet50, 4, 64, 56, 256, 1, 1, 0, 1)    \
    CONV(resnet50, 2, 256, 56, 64, 1, 1, 0, 1)    \
    CONV(resnet50, 1, 256, 56, 128, 1, 1, 0, 1)   \
    CONV(resnet50, 1, 128, 56, 128, 3, 2, 1, 1)   \
    CONV(resnet50, 4, 128, 28, 512, 1, 1, 0, 1)   \
    CONV(resnet50, 1, 256, 56, 512, 1, 2, 0, 1)   \
    CONV(resnet50, 3, 512, 28, 128, 1, 1, 0, 1)   \
    CONV(resnet50, 3, 128, 28, 128, 3, 1, 1, 1)   \
    CONV(resnet50, 1, 512, 28, 256, 1, 1, 0, 1)   \
    CONV(resnet50, 1, 256, 28, 256, 3, 2, 1, 1)   \
    CONV(resnet50, 6, 256, 14, 1024, 1, 1, 0, 1)  \
    CONV(resnet50, 1, 512, 28, 1024, 1, 2, 0, 1)  \
    CONV(resnet50, 5, 1024, 14, 256, 1, 1, 0, 1)  \
    CONV(resnet50, 5, 256, 14, 256, 3, 1, 1, 1)   \
    CONV(resnet50, 1, 1024, 14, 512, 1, 1, 0, 1)  \
    CONV(resnet50, 1, 512, 14, 512, 3, 2, 1, 1)   \
    CONV(resnet50, 3, 512, 7, 2048, 1, 1, 0, 1)   \
    CONV(resnet50, 1, 1024, 14, 2048, 1, 2, 0, 1) \
    CONV(resnet50, 2, 2048, 7, 512, 1, 1, 0, 1)   \
    CONV(resnet50, 2, 512, 7, 512, 3, 1, 1, 1)    \
    MATMUL(resnet50, 1, 1, 1, 2048, 1000, 1)      \
    MATMUL(bert, 48, 1, 128, 768, 768, 0)         \
    MATMUL(bert, 12, 12, 128, 64, 128, 0)         \
    MATMUL(bert, 12, 12, 128, 128, 64, 0)         \
    MATMUL(bert, 12, 1, 128, 768, 3072, 0)        \
    MATMUL(bert, 12, 1, 128, 3072, 768, 0)        \
    MATMUL(skinny, 1, 1, 1, 2048, 1000, 1)        \
    MATMUL(skinny, 1, 1, 1, 2048, 1000, 0)        \
    MATMUL(skinny, 1, 1, 8, 2048, 1000, 1)        \
    MATMUL(skinny, 1, 1, 8, 2048, 1000, 0)        \
    MATMUL(skinny, 1, 1, 1, 768, 768, 0)          \
    MATMUL(skinny, 1, 1, 4, 768, 3072, 0)         \
    MATMUL(skinny, 1, 1, 1, 512, 10, 1)           \
    MATMUL(skinny, 1, 1, 1, 4096, 4096, 1)        \
    MATMUL(skinny, 1, 1, 1, 4096, 4096, 0)        \
    MATMUL(skinny, 1, 1, 1, 768, 30522, 1)        \
    MATMUL(skinny, 1, 12, 1, 64, 512, 1)          \
    MATMUL(skinny, 1, 12, 1, 512, 64, 0)          \
    MATMUL(skinny, 1, 1, 2048, 1024, 1, 0)        \
    MATMUL(odd, 1, 3, 37, 101, 53, 0)             \
    MATMUL(odd, 1, 1, 130, 259, 131, 1)           \
    CONV(odd, 1, 6, 13, 10, 3, 2, 1, 2)           \
    CONV(odd, 1, 18, 11, 66, 3, 1, 1, 1)          \
    MATMUL(square, 1, 1, 1024, 1024, 1024, 0)     \
    MATMUL(square, 1, 1, 4096, 4096, 4096, 0)
