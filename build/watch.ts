/** `npm run watch [-- TEST-FILE]`: checks the types, and runs one test file, after each change of a source file. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const files = process.argv.slice(2);
const children = [
  ['node_modules/typescript-native/bin/tsc', '-p', '.', '--watch', '--preserveWatchOutput'],
  ...(files.length === 0 ? [] : [['--test', '--watch', ...files]]),
].map((args) => spawn(process.execPath, args, { cwd: root, stdio: 'inherit' }));
for (const child of children)
  child.on('close', (code) => {
    for (const each of children) each.kill();
    process.exitCode = code ?? 0;
  });
