import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { CodedError } from '../../base/errors.ts';

/** Hashes passwords and verifies them. Errors: CodedError 'too-many-requests'. */
export interface PasswordHasher {
  hash(password: string): Promise<string>;
  /** Also returns false for a `hash` in an unknown format. */
  verify(password: string, hash: string): Promise<boolean>;
}

/** Parameters of scrypt (RFC 7914). `ln` is the base-2 logarithm of N. */
interface ScryptCost {
  readonly ln: number;
  readonly r: number;
  readonly p: number;
}

/** 16 MiB, and about the same time as bcrypt at its default cost. */
const USUAL: ScryptCost = { ln: 14, r: 8, p: 2 };
const USUAL_BCRYPT_COST = 10;
/** Highest cost that is used. A hash with a higher cost takes minutes. */
const HIGHEST_BCRYPT_COST = 20;
/** Maximum memory for a stored hash, so that a damaged hash cannot exhaust the memory of the process. */
const MAX_MEMORY = 256 << 20;
const SALT_BYTES = 16;
const KEY_BYTES = 32;
/**
 * Maximum numbers of concurrent hashes and of waiting requests. The first limit leaves room in the thread pool for
 * other work.
 */
const RUNNING = 2;
const WAITING = 128;

/**
 * Cost that takes about as long as etcd's `--bcrypt-cost`: each step doubles the time without using more memory than
 * the default cost.
 */
export function costLikeBcrypt(bcryptCost: number): ScryptCost {
  const steps = Math.min(bcryptCost, HIGHEST_BCRYPT_COST) - USUAL_BCRYPT_COST;
  return { ln: USUAL.ln + Math.min(steps, 0), r: USUAL.r, p: USUAL.p * 2 ** Math.max(steps, 0) };
}

/** scrypt on Node's thread pool. Hashes are in PHC format with their parameters: `$scrypt$ln=14,r=8,p=2$salt$key`. */
export function scryptHasher(cost: ScryptCost = USUAL): PasswordHasher {
  const gate = new Gate();
  return {
    hash: async (password) => {
      const salt = randomBytes(SALT_BYTES);
      const key = await gate.run(() => derive(password, salt, cost, KEY_BYTES));
      const { ln, r, p } = cost;
      return `$scrypt$ln=${ln},r=${r},p=${p}$${unpadded(salt)}$${unpadded(key)}`;
    },
    verify: async (password, hash) => {
      const parts = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,4})\$([\w+/]+)\$([\w+/]+)$/.exec(hash);
      if (parts === null) return false;
      const [, ln, r, p, salt = '', key = ''] = parts;
      const stored: ScryptCost = { ln: Number(ln), r: Number(r), p: Number(p) };
      const expected = Buffer.from(key, 'base64');
      if (memoryOf(stored) > MAX_MEMORY || stored.ln < 1 || stored.r < 1 || stored.p < 1) return false;
      const found = await gate.run(() => derive(password, Buffer.from(salt, 'base64'), stored, expected.length));
      return timingSafeEqual(found, expected);
    },
  };
}

function memoryOf({ ln, r, p }: ScryptCost): number {
  return 128 * r * (2 ** ln + p);
}

function derive(password: string, salt: Buffer, cost: ScryptCost, length: number): Promise<Buffer> {
  const options: ScryptOptions = { N: 2 ** cost.ln, r: cost.r, p: cost.p, maxmem: memoryOf(cost) + (1 << 20) };
  return new Promise((resolve, reject) => {
    scrypt(password, salt, length, options, (error, key) => {
      if (error === null) resolve(key);
      else reject(error);
    });
  });
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}

/** Limits concurrency, and rejects when too many requests wait. */
class Gate {
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= RUNNING) {
      if (this.#waiting.length >= WAITING) throw new CodedError('too-many-requests', 'too many passwords to check');
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    } else this.#running += 1;
    try {
      return await work();
    } finally {
      // Passes the slot to the next waiting request.
      const next = this.#waiting.shift();
      if (next === undefined) this.#running -= 1;
      else next();
    }
  }
}
