/* ops: the operator table. */
#include "cli.h"

int cmd_ops(const cli_options *o) {
    (void)o;
    braid_error err = {0};
    char *text = NULL;
    if (braid_ops_describe(&text, &err) != BRAID_OK) return cli_fail(&err);
    fputs(text, stdout);
    braid_text_free(text);
    return CLI_OK;
}
