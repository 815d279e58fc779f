/** Hashes passwords in a thread of its own: one takes a tenth of a second and more. */
import { parentPort } from 'node:worker_threads';
import { hashSync } from 'bcryptjs';
import { matches } from './hashes.ts';

interface Order {
  readonly id: number;
  readonly password: string;
  /** To compare with; undefined: a hash is made. */
  readonly hash?: string;
}

const COST = 10;

parentPort?.on('message', ({ id, password, hash }: Order) => {
  parentPort?.postMessage({ id, result: hash === undefined ? hashSync(password, COST) : matches(password, hash) });
});
