/** Thread that hashes passwords. Hashing one password takes 0.1 seconds or more. */
import '../../../base/short-buffers.ts';
import { parentPort } from 'node:worker_threads';
import { hashSync } from 'bcryptjs';
import { isPasswordOf } from './hashes.ts';

interface Order {
  readonly id: number;
  readonly password: string;
  /** Hash to compare with; if undefined, a new hash is created. */
  readonly hash?: string;
}

const COST = 10;

parentPort?.on('message', ({ id, password, hash }: Order) => {
  parentPort?.postMessage({ id, result: hash === undefined ? hashSync(password, COST) : isPasswordOf(password, hash) });
});
