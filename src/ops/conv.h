/*
 * conv: the geometry of Conv and ConvTranspose, read from attributes and dims.
 */
#ifndef BRAID_CONV_H
#define BRAID_CONV_H

#include "ops/op.h"

#define CONV_AXES (BRAID_MAX_RANK - 2)

typedef enum conv_auto { CONV_NOTSET, CONV_VALID, CONV_SAME_UPPER, CONV_SAME_LOWER } conv_auto;

/*
 * Of a Conv: output pixel o reads input pixel o * stride - begin + k * dilation for k < kernel.
 * Of a ConvTranspose: input pixel i adds to output pixel i * stride - begin + k * dilation.
 * Kernel dims may be symbols after conv_read; input and output dims are filled by the shape functions.
 */
typedef struct conv {
    int axes;
    int64_t groups, batch;
    int64_t channels, outputs; /* of all groups */
    int64_t in[CONV_AXES], out[CONV_AXES], kernel[CONV_AXES], stride[CONV_AXES], dilation[CONV_AXES], begin[CONV_AXES],
        end[CONV_AXES];
    int64_t extra[CONV_AXES]; /* output_padding */
    conv_auto mode;
} conv;

/* Reads and checks the attributes for `axes` spatial axes; kernel dims come from kernel_shape, else from the weights'
   dims (w: the weights' type or NULL; both must agree). begin and end are the pads attribute, 0 in automatic modes. */
braid_status conv_read(const node *, int axes, const tensor_type *w, conv *, braid_error *err);
/* Fills batch, channels, outputs, in, out and resolved pads from static types; Conv and ConvTranspose. */
braid_status conv_shape(const node *, const tensor_type *x, const tensor_type *w, conv *, braid_error *err);
braid_status conv_transpose_shape(const node *, const tensor_type *x, const tensor_type *w, conv *, braid_error *err);

/* Output extent of one axis of a Conv whose input extent is known; resolves automatic pads. */
braid_status conv_axis(conv *, int axis, int64_t in, braid_error *err);

braid_status conv_infer(infer *);
braid_status conv_transpose_infer(infer *);
braid_status conv_lower(lowering *);
braid_status conv_transpose_lower(lowering *);

#endif
