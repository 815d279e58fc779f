/** What administration asks of a store's file or a snapshot, each on a thread of its own. */
import { Worker } from 'node:worker_threads';
import { CodedError } from '../../base/errors.ts';
import type { SnapshotSummary } from '../../components/etcd/administration/port.ts';
import type { WorkerAnswers, WorkerReply, WorkerRequest } from './protocol.ts';

/**
 * Reads a snapshot on a thread of its own and checks the checksum of every row. Throws CodedError 'corrupt',
 * 'unsupported' naming the file.
 */
export function summarizeSnapshot(path: string, nativeBinding: string): Promise<SnapshotSummary> {
  return askOnce('summarize', { kind: 'summarize', path, nativeBinding });
}

/** The last revision in it, without looking at anything else. Throws as `summarizeSnapshot`. */
export function snapshotRevision(path: string, nativeBinding: string): Promise<number> {
  return askOnce('snapshotRevision', { kind: 'snapshotRevision', path, nativeBinding });
}

/**
 * The last revision of a store's own file, damaged as it may be, whose row is whole; undefined when nothing can be
 * read. Changes nothing that is stored.
 */
export function lastIntactRevision(path: string, nativeBinding: string): Promise<number | undefined> {
  return askOnce('lastIntact', { kind: 'lastIntact', path, nativeBinding });
}

async function askOnce<K extends WorkerRequest['kind']>(
  _kind: K,
  request: Extract<WorkerRequest, { kind: K }>,
): Promise<WorkerAnswers[K]> {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { name: 'sqlite' });
  try {
    return await new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('message', (reply: WorkerReply) => {
        if ('failure' in reply) reject(new CodedError(reply.failure.code, reply.failure.message));
        else resolve(reply.value as WorkerAnswers[K]);
      });
      worker.postMessage({ id: 1, request });
    });
  } finally {
    await worker.terminate();
  }
}
