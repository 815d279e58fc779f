import { readdir, readFile, stat } from 'node:fs/promises';
import type { Manifests } from '../../ports/files-port.ts';

export const manifests: Manifests = {
  async names(directory) {
    try {
      return await readdir(directory);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
      throw error;
    }
  },
  async look(path) {
    const found = await stat(path);
    if (!found.isFile()) return undefined;
    return { sizeBytes: found.size, stamp: `${found.mtimeMs}/${found.size}/${found.ino}` };
  },
  read: (path) => readFile(path, 'utf8'),
  async fetch(url, { timeoutMs, maxBytes }) {
    const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(timeoutMs) });
    if (!response.ok) throw new Error(`${url}: HTTP ${response.status}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > maxBytes) throw new Error(`${url}: larger than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  },
};
