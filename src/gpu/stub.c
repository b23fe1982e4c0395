#include "gpu/gpu.h"
braid_status gpu_list(braid_device_info *o, size_t c, size_t *n, braid_error *e){(void)o;(void)c;*n=0;return error_set(e,BRAID_NO_DEVICE,"stub");}
braid_status gpu_open(const braid_device_options *o, gpu **g, braid_error *e){(void)o;*g=NULL;return error_set(e,BRAID_NO_DEVICE,"stub");}
void gpu_close(gpu*g){(void)g;} void gpu_describe(const gpu*g, braid_device_info*o){(void)g;(void)o;}
const device_traits *gpu_traits(const gpu*g){(void)g;return NULL;}
braid_status gpu_buffer_new(gpu*g, gpu_memory m, uint64_t b, gpu_buffer*o, braid_error*e){(void)g;(void)m;(void)b;(void)o;return error_memory(e);}
void gpu_buffer_free(gpu*g, gpu_buffer*b){(void)g;(void)b;}
braid_status gpu_upload(gpu*g, gpu_buffer*b, uint64_t o, uint64_t n, gpu_fill_fn*f, void*u, braid_error*e){(void)g;(void)b;(void)o;(void)n;(void)f;(void)u;return error_memory(e);}
braid_status gpu_download(gpu*g, const gpu_buffer*b, uint64_t o, uint64_t n, void*u, braid_error*e){(void)g;(void)b;(void)o;(void)n;(void)u;return error_memory(e);}
braid_status gpu_pipelines(gpu*g, size_t n, const gpu_pipeline_key*k, uint32_t*o, braid_error*e){(void)g;(void)n;(void)k;(void)o;return error_memory(e);}
uint32_t gpu_pipeline_count(const gpu*g){(void)g;return 0;}
braid_status gpu_program_new(gpu*g, const gpu_program_info*i, gpu_program**o, braid_error*e){(void)g;(void)i;(void)o;return error_memory(e);}
void gpu_program_free(gpu*g, gpu_program*p){(void)g;(void)p;}
braid_status gpu_program_run(gpu*g, gpu_program*p, uint64_t*d, braid_error*e){(void)g;(void)p;(void)d;return error_memory(e);}
bool gpu_program_times(gpu*g, const gpu_program*p, size_t i, uint64_t*s, uint64_t*t){(void)g;(void)p;(void)i;(void)s;(void)t;return false;}
