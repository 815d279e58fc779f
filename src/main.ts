import { main } from './cli/index.ts';

// Pipes, files and terminals are written synchronously on Linux: nothing is lost by leaving at once, and nothing that a failed
// start may have left open keeps the process from ending.
main({ argv: process.argv.slice(2), argv0: process.argv0 }).then((code) => process.exit(code));
