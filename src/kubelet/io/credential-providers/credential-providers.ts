/**
 * The kubelet's credential provider plug-ins: programs that read a CredentialProviderRequest from standard input and
 * print the credentials of an image's registry. Source: KEP-2133, k8s.io/kubelet/pkg/apis/credentialprovider/v1.
 */

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { parseDuration } from '../../../base/time/duration.ts';
import type { RegistryAuth } from '../../../runtime/port.ts';
import type { CredentialProviders } from '../../ports/credentials-port.ts';
import { matchesImage, registryImage } from './match.ts';

export interface ProviderConfig {
  /** Name of a program in the plug-in directory. */
  readonly name: string;
  readonly apiVersion: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheDurationMs: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

interface Answer {
  readonly auth: ReadonlyMap<string, RegistryAuth>;
  readonly cacheKeyType: string;
  readonly durationMs: number;
}

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT = 1024 * 1024;
const MAX_CACHED = 500;

export function createCredentialProviders(options: {
  readonly directory: string;
  readonly providers: readonly ProviderConfig[];
  readonly nowMs: () => number;
  readonly log: Log;
}): CredentialProviders {
  const cache = new BoundedMap<string, { readonly answer: Answer; readonly untilMs: number }>(MAX_CACHED);

  const runProvider = async (provider: ProviderConfig, image: string): Promise<Answer> => {
    const registry = image.split('/', 1)[0] ?? '';
    for (const key of [`i ${image}`, `r ${registry}`, 'g']) {
      const found = cache.get(`${provider.name} ${key}`);
      if (found !== undefined && found.untilMs > options.nowMs()) return found.answer;
    }
    const answer = readAnswer(await runPlugin(join(options.directory, provider.name), provider, image), provider);
    if (answer.durationMs > 0) {
      const key = { Image: `i ${image}`, Registry: `r ${registry}`, Global: 'g' }[answer.cacheKeyType] ?? `i ${image}`;
      cache.set(`${provider.name} ${key}`, { answer, untilMs: options.nowMs() + answer.durationMs });
    }
    return answer;
  };

  return {
    async find(given) {
      const image = registryImage(given);
      for (const provider of options.providers) {
        if (!provider.matchImages.some((pattern) => matchesImage(pattern, image))) continue;
        try {
          const { auth } = await runProvider(provider, image);
          const matching = [...auth].filter(([pattern]) => matchesImage(pattern, image));
          const best = matching.toSorted(([left], [right]) => right.length - left.length)[0];
          if (best !== undefined) return best[1];
        } catch (error) {
          options.log.warn('credential provider failed', { provider: provider.name, image, error: messageOf(error) });
        }
      }
      return undefined;
    },
  };
}

function runPlugin(program: string, { apiVersion, args, env }: ProviderConfig, image: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { NODE_OPTIONS: _, ...inherited } = process.env;
    const child = execFile(
      program,
      [...args],
      { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT, killSignal: 'SIGKILL', env: { ...inherited, ...env } },
      // Output of a plug-in may contain credentials, so errors contain only its exit status.
      (error, stdout) => {
        if (error === null) resolve(stdout);
        else reject(new Error(`${program}: exit ${String(error.code ?? error.signal)}`));
      },
    );
    child.stdin?.on('error', () => {});
    child.stdin?.end(JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion, image }));
  });
}

function readAnswer(text: string, { name, apiVersion, defaultCacheDurationMs }: ProviderConfig): Answer {
  const value = objectOf(JSON.parse(text));
  if (value['kind'] !== 'CredentialProviderResponse' || value['apiVersion'] !== apiVersion)
    throw new Error(`${name} answered another kind or version than CredentialProviderResponse ${apiVersion}`);
  const auth = new Map<string, RegistryAuth>();
  for (const [pattern, each] of Object.entries(objectOf(value['auth'] ?? {}))) {
    const { username, password } = objectOf(each);
    if (typeof username === 'string' && typeof password === 'string') auth.set(pattern, { username, password });
  }
  const duration = value['cacheDuration'];
  return {
    auth,
    cacheKeyType: String(value['cacheKeyType'] ?? 'Image'),
    durationMs: typeof duration === 'string' ? (parseDuration(duration) ?? 0) : defaultCacheDurationMs,
  };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('the response is not an object');
  return Object.fromEntries(Object.entries(value));
}
