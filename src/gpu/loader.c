/*
 * loader.c: the Vulkan loader, opened at run time, and an instance with or without the validation layer.
 */
#include "gpu/inside.h"
#include <dlfcn.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

static braid_status library_open(gpu_instance *in, braid_error *err) {
    static const char *const names[] = {"libvulkan.so.1", "libvulkan.so"};
    for (size_t i = 0; i < COUNT_OF(names) && !in->library; i++) in->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!in->library)
        return error_set(err, BRAID_NO_DEVICE,
                         "the Vulkan loader libvulkan.so.1 was not found: install the package "
                         "libvulkan1 (and mesa-vulkan-drivers or a vendor's driver)");
    *(void **)&in->vk.GetInstanceProcAddr = dlsym(in->library, "vkGetInstanceProcAddr");
    if (!in->vk.GetInstanceProcAddr)
        return error_set(err, BRAID_NO_DEVICE, "libvulkan.so.1 is not a Vulkan loader: install the package libvulkan1");
    return BRAID_OK;
}

static bool global_calls(gpu_calls *vk) {
    bool all = true;
#define LOAD(name)                                                                                                     \
    vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(NULL, "vk" #name);                                                \
    all = all && vk->name;
    GPU_GLOBAL_CALLS(LOAD)
#undef LOAD
    return all;
}

static bool instance_calls(gpu_calls *vk, VkInstance handle) {
    bool all = true;
#define LOAD(name)                                                                                                     \
    vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(handle, "vk" #name);                                              \
    all = all && vk->name;
    GPU_INSTANCE_CALLS(LOAD)
#undef LOAD
#define LOAD(name) vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(handle, "vk" #name);
    GPU_MESSENGER_CALLS(LOAD)
#undef LOAD
    return all;
}

braid_status gpu_load_device_calls(gpu_calls *vk, VkDevice device, braid_error *err) {
#define LOAD(name)                                                                                                     \
    vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(device, "vk" #name);                                                \
    if (!vk->name) return error_set(err, BRAID_INTERNAL, "the driver lacks vk" #name);
    GPU_DEVICE_CALLS(LOAD)
#undef LOAD
#define LOAD(name) vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(device, "vk" #name);
    GPU_FIGURE_CALLS(LOAD)
#undef LOAD
    return BRAID_OK;
}

static bool has_layer(const gpu_calls *vk, const char *name) {
    VkLayerProperties layers[64];
    uint32_t n = COUNT_OF(layers);
    if (vk->EnumerateInstanceLayerProperties(&n, layers) < 0) return false;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(layers[i].layerName, name) == 0) return true;
    return false;
}

static bool has_extension(const gpu_calls *vk, const char *layer, const char *name) {
    VkExtensionProperties extensions[256];
    uint32_t n = COUNT_OF(extensions);
    if (vk->EnumerateInstanceExtensionProperties(layer, &n, extensions) < 0) return false;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(extensions[i].extensionName, name) == 0) return true;
    return false;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                 VkDebugUtilsMessageTypeFlagsEXT kind,
                                                 const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
    gpu_instance *in = user;
    bool validation =
        (kind & (VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT)) !=
        0;
    if (validation) atomic_fetch_add(&in->messages, 1);
    bool is_error = (severity & VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT) != 0;
    braid_log_level level = is_error ? BRAID_LOG_ERROR : validation ? BRAID_LOG_WARN : BRAID_LOG_DEBUG;
    log_line(&in->log, level, "%s: %s", validation ? "validation" : "loader", data->pMessage);
    return VK_FALSE;
}

static braid_status instance_failure(VkResult r, braid_error *err) {
    if (r == VK_ERROR_INCOMPATIBLE_DRIVER)
        return error_set(err, BRAID_NO_DEVICE,
                         "no Vulkan driver was found: install the package mesa-vulkan-drivers "
                         "or a vendor's driver");
    return gpu_failure(NULL, r, "vkCreateInstance", err);
}

static braid_status instance_create(gpu_instance *in, bool validation, braid_error *err) {
    const char *layers[1], *extensions[2];
    VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity =
            VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = on_message,
        .pUserData = in,
    };
    VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .pEngineName = "braid", .apiVersion = VK_API_VERSION_1_3};
    VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                 .pApplicationInfo = &application,
                                 .ppEnabledLayerNames = layers,
                                 .ppEnabledExtensionNames = extensions};
    if (has_extension(&in->vk, NULL, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
        extensions[info.enabledExtensionCount++] = VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME;
        info.flags = VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
    }
    if (validation && has_layer(&in->vk, VALIDATION_LAYER)) {
        layers[info.enabledLayerCount++] = VALIDATION_LAYER;
        extensions[info.enabledExtensionCount++] = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
        info.pNext = &messenger;
    } else if (validation) {
        log_line(&in->log, BRAID_LOG_WARN,
                 "the validation layer " VALIDATION_LAYER " was not found: install the package "
                 "vulkan-validationlayers");
        validation = false;
    }
    VkResult r = in->vk.CreateInstance(&info, NULL, &in->handle);
    if (r != VK_SUCCESS) {
        in->handle = NULL;
        return instance_failure(r, err);
    }
    if (!instance_calls(&in->vk, in->handle))
        return error_set(err, BRAID_NO_DEVICE, "the Vulkan loader is too old: update the package libvulkan1");
    if (!validation || !in->vk.CreateDebugUtilsMessengerEXT || !in->vk.DestroyDebugUtilsMessengerEXT) return BRAID_OK;
    r = in->vk.CreateDebugUtilsMessengerEXT(in->handle, &messenger, NULL, &in->messenger);
    return r < 0 ? gpu_failure(NULL, r, "vkCreateDebugUtilsMessengerEXT", err) : BRAID_OK;
}

braid_status gpu_instance_open(gpu_instance *in, bool validation, logger log, braid_error *err) {
    memset(in, 0, sizeof *in);
    in->log = log;
    atomic_init(&in->messages, 0);
    TRY(library_open(in, err));
    uint32_t version = 0;
    if (!global_calls(&in->vk) || in->vk.EnumerateInstanceVersion(&version) < 0 || version < VK_API_VERSION_1_1)
        return error_set(err, BRAID_NO_DEVICE, "the Vulkan loader is too old: update the package libvulkan1");
    return instance_create(in, validation, err);
}

void gpu_instance_close(gpu_instance *in) {
    if (in->messenger) in->vk.DestroyDebugUtilsMessengerEXT(in->handle, in->messenger, NULL);
    if (in->handle) {
        if (!in->vk.DestroyInstance)
            in->vk.DestroyInstance = (PFN_vkDestroyInstance)in->vk.GetInstanceProcAddr(in->handle, "vkDestroyInstance");
        if (in->vk.DestroyInstance) in->vk.DestroyInstance(in->handle, NULL);
    }
    if (in->library) dlclose(in->library);
    in->messenger = VK_NULL_HANDLE;
    in->handle = NULL;
    in->library = NULL;
}
