/** Child processes that are killed before one of their renames or removals, to simulate a power cut. */
import { spawn } from 'node:child_process';

const KILLING = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
let left = Number(process.env.CRASH_AT);
for (const name of ['rename', 'rm']) {
  const original = fs.promises[name];
  fs.promises[name] = (...args) => {
    if (left-- === 0) process.kill(process.pid, 'SIGKILL');
    return original(...args);
  };
}
syncBuiltinESMExports();
`;

/**
 * Runs a module, which must import the tested code dynamically, and kills it before the rename or removal with the
 * number `step`. Returns true if the module was killed, false if it ended because it has fewer steps.
 */
export function crashAt(step: number, module: string): Promise<boolean> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${KILLING}\n${module}`], {
    env: { ...process.env, CRASH_AT: String(step) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (signal === 'SIGKILL') resolve(true);
      else if (code === 0) resolve(false);
      else reject(new Error(stderr));
    });
  });
}
