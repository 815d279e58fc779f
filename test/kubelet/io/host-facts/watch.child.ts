/** Prints events of watches of a directory, in a process whose inotify limits are exhausted. */
import { watch } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { watchPath } from '../../../../src/kubelet/io/host-facts/index.ts';

const directory = process.argv[2] ?? '';
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const exitsDirectory = join(directory, 'exits');
await mkdir(exitsDirectory);
const file = join(directory, 'file');
await writeFile(file, 'a');

let inotify = 'works';
try {
  watch(directory).close();
} catch (error) {
  inotify = String(error);
}
const names: string[] = [];
const exits: string[] = [];
let fileCalls = 0;
const watches = [
  watchPath(directory, (name) => {
    if (name === 'created') names.push(name);
  }),
  watchPath(file, () => {
    fileCalls += 1;
  }),
  watchPath(exitsDirectory, (name) => exits.push(name ?? ''), { names: true }),
];
await sleep(300);
await writeFile(join(directory, 'created'), '1');
await writeFile(join(directory, 'temporary'), '1');
await writeFile(join(exitsDirectory, 'first'), '1');
await sleep(150);
for (const name of ['second', 'third']) await writeFile(join(exitsDirectory, name), '1');
await sleep(1_200);
await writeFile(join(directory, 'created'), '2');
await writeFile(file, 'b');
await sleep(1_200);
await rename(join(directory, 'temporary'), join(directory, 'other'));
await rm(join(directory, 'created'));
await sleep(1_200);
for (const each of watches) each.close();
process.stdout.write(JSON.stringify({ inotify, names, file: fileCalls, exits: exits.sort() }));
