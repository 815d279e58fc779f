/** Trees that exceed every path limit, created with mkdir and chdir as a tenant could. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const MAKE = `
const { mkdirSync, writeFileSync } = require('node:fs');
const [path, depth] = process.argv.slice(1);
const name = 'd'.repeat(255);
process.chdir(path);
for (let level = 0; level < Number(depth); level += 1) {
  mkdirSync(name);
  process.chdir(name);
}
writeFileSync('end', Buffer.alloc(1 << 20, 1));
`;

/** Creates a chain of `depth` directories with names of 255 bytes below `path`, and a file of 1 MB at its end. */
export async function makeDeepTree(path: string, depth: number): Promise<void> {
  await promisify(execFile)(process.execPath, ['-e', MAKE, path, String(depth)]);
}
