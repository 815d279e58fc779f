/** Queries of a store's file or a snapshot for administration. Each runs on its own thread. */
import { Worker } from 'node:worker_threads';
import { CodedError } from '../../base/errors.ts';
import type { SnapshotPosition, SnapshotSummary } from '../administration/port.ts';
import type { WorkerAnswers, WorkerReply, WorkerRequest } from './protocol.ts';

/**
 * Reads a snapshot and verifies the checksum of every row. Throws CodedError 'corrupt' or 'unsupported' with the file
 * name.
 */
export function summarizeSnapshot(path: string, nativeBinding: string): Promise<SnapshotSummary> {
  return queryOnce('summarize', { kind: 'summarize', path, nativeBinding });
}

/** Last revision and cluster of a snapshot, without verifying the rest. Throws the errors of `summarizeSnapshot`. */
export function snapshotPosition(path: string, nativeBinding: string): Promise<SnapshotPosition> {
  return queryOnce('snapshotPosition', { kind: 'snapshotPosition', path, nativeBinding });
}

/**
 * Last revision whose row is intact in a store's own file and journal, which may be damaged; undefined if no row can be
 * read. Changes no stored data.
 */
export function lastIntactRevision(path: string, nativeBinding: string): Promise<number | undefined> {
  return queryOnce('lastIntact', { kind: 'lastIntact', path, nativeBinding });
}

async function queryOnce<K extends WorkerRequest['kind']>(
  _kind: K,
  request: Extract<WorkerRequest, { kind: K }>,
): Promise<WorkerAnswers[K]> {
  const worker = new Worker(new URL('./sqlite-worker.ts', import.meta.url), { name: 'sqlite' });
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
