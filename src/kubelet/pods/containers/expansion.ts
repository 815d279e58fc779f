/**
 * Expansion of `$(NAME)` references and size limits for the data that a pod references. Source:
 * third_party/forked/golang/expansion.
 */

/** Limit for environment, command and arguments of one container. The kernel's own limit is 2 MiB. */
export const MAX_CONTAINER_BYTES = 1024 * 1024;
/** Limit for the files of all config map, secret, downward API and projected volumes of one pod. */
export const MAX_VOLUME_BYTES = 16 * 1024 * 1024;
/** PATH_MAX of Linux. */
export const MAX_PATH_BYTES = 4096;

/** Checks sizes before data is built, so that data above the limit is never allocated. */
export class ExpansionBudget {
  private readonly what: string;
  private readonly limit: number;
  private used = 0;

  /** `what` names the measured data in the error, such as `environment, command and args`. */
  constructor(what: string, limit: number) {
    this.what = what;
    this.limit = limit;
  }

  /** Adds `bytes`. Throws an Error that names the limit when the sum exceeds it. */
  take(bytes: number): void {
    this.used += bytes;
    if (this.used > this.limit) {
      throw new Error(
        `${this.what}: more than ${this.limit} bytes once references are expanded; refer to less, or to smaller values`,
      );
    }
  }

  /** Adds the JSON-encoded size of a text, in which control characters are longer, and returns the text. */
  text(text: string): string {
    // Fast path: the text is too large even without escaping.
    if (text.length > this.limit) this.take(text.length);
    this.take(Buffer.byteLength(JSON.stringify(text)));
    return text;
  }
}

/**
 * Replaces `$(NAME)` by the variable's value; unknown references stay. `$$` becomes a dollar sign. Runs in linear time;
 * parts of the result are charged to `budget` before they are stored. Throws when the budget is exceeded.
 */
export function expand(text: string, lookup: (name: string) => string | undefined, budget: ExpansionBudget): string {
  const parts: string[] = [];
  const emit = (part: string): void => {
    if (part !== '') parts.push(budget.text(part));
  };
  let start = 0;
  for (let dollar = text.indexOf('$'); dollar >= 0; dollar = text.indexOf('$', start)) {
    const follower = text[dollar + 1];
    const close = follower === '(' ? text.indexOf(')', dollar + 2) : -1;
    if (follower === '$') {
      emit(text.slice(start, dollar + 1));
      start = dollar + 2;
    } else if (close >= 0) {
      emit(text.slice(start, dollar));
      emit(lookup(text.slice(dollar + 2, close)) ?? text.slice(dollar, close + 1));
      start = close + 1;
    } else if (follower === '(') {
      // The rest contains no complete reference, so only `$$` is replaced.
      emit(text.slice(start).replaceAll('$$', () => '$'));
      return parts.join('');
    } else {
      emit(text.slice(start, dollar + 1));
      start = dollar + 1;
    }
  }
  emit(text.slice(start));
  return parts.join('');
}
