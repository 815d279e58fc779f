/** The executable's entry: evaluates the bundle that contains the command, and nothing of the others. */
import { createRequire } from 'node:module';
import { getRawAsset } from 'node:sea';
import { Script } from 'node:vm';
import { bundleOf } from './cli/links.ts';

const filename = `${bundleOf({ argv: process.argv.slice(2), argv0: process.argv0 })}.cjs`;
// Bundles are ASCII: as Latin-1 a character takes one byte, and long texts stand outside of V8's heap.
const source = Buffer.from(getRawAsset(filename)).latin1Slice();
const module = { exports: {} };
let cachedData: Buffer | undefined;
try { cachedData = Buffer.from(getRawAsset(`${filename}.cache`)); } catch {}
const s = new Script(source, { filename, ...(cachedData ? { cachedData } : {}) });
if (s.cachedDataRejected) process.stderr.write('REJECTED\n');
s.runInThisContext()(module.exports, createRequire(process.execPath), module);
