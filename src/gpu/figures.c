/*
 * figures.c: what the driver tells of a pipeline's code, by VK_KHR_pipeline_executable_properties. Names and units are
 * the driver's.
 */
#include "gpu/inside.h"
#include <inttypes.h>

enum { PARTS = 8, FIGURES = 64 };

static void add_figure(const VkPipelineExecutableStatisticKHR *f, text *out) {
    const char *lead = out->length ? ", " : "";
    switch (f->format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
        text_add(out, "%s%.255s %s", lead, f->name, f->value.b32 ? "yes" : "no");
        return;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
        text_add(out, "%s%.255s %" PRId64, lead, f->name, f->value.i64);
        return;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
        text_add(out, "%s%.255s %" PRIu64, lead, f->name, f->value.u64);
        return;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_FLOAT64_KHR:
        text_add(out, "%s%.255s %.3g", lead, f->name, f->value.f64);
        return;
    default:
        return;
    }
}

static void add_part(gpu *g, VkPipeline pipeline, uint32_t part, text *out) {
    VkPipelineExecutableInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline, .executableIndex = part};
    VkPipelineExecutableStatisticKHR list[FIGURES] = {0};
    uint32_t n = FIGURES;
    for (uint32_t i = 0; i < n; i++) list[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    if (g->vk->GetPipelineExecutableStatisticsKHR(g->handle, &info, &n, list) < 0) return;
    for (uint32_t i = 0; i < n; i++) add_figure(&list[i], out);
}

void gpu_pipeline_figures(gpu *g, uint32_t handle, text *out) {
    VkPipeline pipeline = gpu_pipeline_handle(g, handle);
    if (!pipeline || !g->figures || !g->vk->GetPipelineExecutablePropertiesKHR ||
        !g->vk->GetPipelineExecutableStatisticsKHR)
        return;
    VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline};
    VkPipelineExecutablePropertiesKHR parts[PARTS] = {0};
    uint32_t n = PARTS;
    for (uint32_t i = 0; i < n; i++) parts[i].sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
    if (g->vk->GetPipelineExecutablePropertiesKHR(g->handle, &info, &n, parts) < 0) return;
    for (uint32_t i = 0; i < n; i++) add_part(g, pipeline, i, out);
}
