/** The steps of `npm run check`. Each reads the checkout only, needs no other step and runs alone as `npm run check:NAME`. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';

export const CHECKS: Readonly<Record<string, readonly string[]>> = {
  types: ['node_modules/typescript-native/bin/tsc', '-p', '.'],
  console: ['node_modules/typescript-native/bin/tsc', '--noEmit', '-p', 'src/console'],
  lint: ['node_modules/@biomejs/biome/bin/biome', 'check', '.'],
  arrows: ['node_modules/dependency-cruiser/bin/dependency-cruise.mjs', 'src'],
  style: ['test/style/check.ts'],
  unused: ['node_modules/knip/bin/knip.js'],
  docs: ['test/style/references.ts'],
  pages: ['test/style/conventions.ts'],
  language: ['test/style/language.ts'],
};

export interface StepResult {
  readonly ok: boolean;
  readonly seconds: number;
}

/** Runs a command of Node; its output is printed at its end, in one piece. */
export async function nodeStep(root: string, name: string, args: readonly string[]): Promise<StepResult> {
  const begin = performance.now();
  const chunks: Buffer[] = [];
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
  const code = await new Promise<number | null>((resolve) => {
    child.on('error', (error) => {
      chunks.push(Buffer.from(`${join(root, args[0] ?? '')}: ${error.message}\n`));
      resolve(null);
    });
    child.on('close', resolve);
  });
  const seconds = (performance.now() - begin) / 1000;
  process.stdout.write(Buffer.concat(chunks));
  console.log(`${code === 0 ? '✔' : '✖'} ${name} (${seconds.toFixed(1)} s)`);
  return { ok: code === 0, seconds };
}
