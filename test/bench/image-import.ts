/**
 * Imports an image of about 1 GB with `ctr images import` (containerd, unpacked) and with `hyperedge image import`,
 * alternating, and prints the ratio of the medians. Usage: node test/bench/image-import.ts [ROUNDS]. Needs root, the
 * executable of `npm run build` and Debian's containerd.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pack } from 'tar-stream';
import { eventually, executable, run } from '../e2e/harness.ts';

const LAYERS = 4;
const LAYER_BYTES = 256 * 1024 ** 2;
const GOAL = 0.7;
const MIB = 1024 ** 2;

/** File sizes as in packages of a distribution: many small files, some large ones. */
function sizesOf(layer: number): number[] {
  const sizes: number[] = [];
  let left = LAYER_BYTES;
  for (let index = 0; left > 0; index++) {
    const size = Math.min(left, index % 40 === 0 ? 16 * MIB : index % 8 === 0 ? 512 * 1024 : 4096 * (1 + (index % 7)));
    sizes.push(size + (layer % 2));
    left -= size;
  }
  return sizes;
}

async function writeLayer(path: string, layer: number): Promise<string> {
  const hash = createHash('sha256');
  const tar = pack();
  const noise = randomBytes(16 * MIB + 1);
  const writing = pipeline(
    tar,
    async function* (chunks) {
      for await (const chunk of chunks as AsyncIterable<Buffer>) {
        hash.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(path),
  );
  for (const [index, size] of sizesOf(layer).entries()) {
    await new Promise<void>((resolve, reject) => {
      const name = `layer${layer}/d${index % 50}/f${index}`;
      tar.entry({ name, mode: 0o644 }, noise.subarray(0, size), (error) => (error ? reject(error) : resolve()));
    });
  }
  tar.finalize();
  await writing;
  return `sha256:${hash.digest('hex')}`;
}

async function writeImage(scratch: string): Promise<string> {
  const layers: string[] = [];
  const diffIds: string[] = [];
  for (let layer = 0; layer < LAYERS; layer++) {
    const path = join(scratch, `layer${layer}.tar`);
    diffIds.push(await writeLayer(path, layer));
    layers.push(path);
  }
  const config = {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Cmd: ['/bin/true'] },
    rootfs: { type: 'layers', diff_ids: diffIds },
  };
  const manifest = [
    { Config: 'config.json', RepoTags: ['lab.local/big:1'], Layers: layers.map((_, i) => `layer${i}.tar`) },
  ];
  await writeFile(join(scratch, 'config.json'), JSON.stringify(config));
  await writeFile(join(scratch, 'manifest.json'), JSON.stringify(manifest));
  const archive = join(scratch, 'big.tar');
  const members = ['manifest.json', 'config.json', ...layers.map((_, i) => `layer${i}.tar`)];
  const made = await run('tar', ['-cf', archive, '-C', scratch, ...members], { timeoutMs: 300_000 });
  if (made.code !== 0) throw new Error(made.stderr);
  for (const path of layers) await rm(path);
  return archive;
}

interface Containerd {
  readonly address: string;
  readonly process: ChildProcess;
}

async function startContainerd(directory: string): Promise<Containerd> {
  await mkdir(directory, { recursive: true });
  const address = join(directory, 'c.sock');
  const config = join(directory, 'config.toml');
  const lines = [
    'version = 2',
    `root = "${directory}/root"`,
    `state = "${directory}/state"`,
    'disabled_plugins = ["io.containerd.grpc.v1.cri"]',
    '[grpc]',
    `address = "${address}"`,
  ];
  await writeFile(config, `${lines.join('\n')}\n`);
  const child = spawn('containerd', ['-c', config], { stdio: 'ignore' });
  await eventually('containerd', 20_000, async () => {
    const answered = await run('ctr', ['-a', address, 'version']);
    return answered.code === 0 ? true : undefined;
  });
  return { address, process: child };
}

async function timed(file: string, args: readonly string[]): Promise<number> {
  await run('sync', []);
  // The archive is in the page cache for both programs.
  const began = performance.now();
  const ran = await run(file, args, { timeoutMs: 600_000 });
  if (ran.code !== 0) throw new Error(`${file}: ${ran.stdout}${ran.stderr}`);
  return performance.now() - began;
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const rounds = Number(process.argv[2] ?? 3);
const scratch = await mkdtemp(join(tmpdir(), 'he-import-'));
try {
  const archive = await writeImage(scratch);
  const { size } = await stat(archive);
  process.stdout.write(`archive of ${Math.round(size / MIB)} MiB, ${LAYERS} layers\n`);
  const theirs: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const containerd = await startContainerd(join(scratch, `containerd${round}`));
    try {
      theirs.push(await timed('ctr', ['-a', containerd.address, 'images', 'import', archive]));
    } finally {
      containerd.process.kill('SIGTERM');
      await new Promise((resolve) => containerd.process.once('exit', resolve));
      await rm(join(scratch, `containerd${round}`), { recursive: true, force: true });
    }
    const root = join(scratch, `root${round}`);
    await mkdir(root);
    ours.push(await timed(executable, ['image', 'import', '--root', root, archive]));
    await rm(root, { recursive: true, force: true });
    process.stdout.write(
      `round ${round + 1}: ctr ${Math.round(theirs.at(-1) ?? 0)} ms, hyperedge ${Math.round(ours.at(-1) ?? 0)} ms\n`,
    );
  }
  const ratio = median(ours) / median(theirs);
  process.stdout.write(
    `median ctr ${Math.round(median(theirs))} ms, hyperedge ${Math.round(median(ours))} ms, ratio ${ratio.toFixed(2)} (goal ${GOAL})\n`,
  );
  process.exitCode = ratio <= GOAL ? 0 : 1;
} finally {
  await rm(scratch, { recursive: true, force: true });
}
