/**
 * Platforms of images (OCI image specification, "platform") and those that a machine supports. Source:
 * github.com/containerd/platforms; x86-64 psABI, "Micro-Architecture Levels".
 */
import { readFile } from 'node:fs/promises';
import { RuntimeError } from '../port.ts';

/** A platform whose images can run here. */
export interface Platform {
  readonly architecture: string;
  /** Accepted variants, best first; '' stands for images without a variant. */
  readonly variants: readonly string[];
}

export interface ImagePlatform {
  readonly os: string;
  readonly architecture: string;
  readonly variant: string;
}

/** Linux CPU flags that each level requires in addition to the previous level. */
const AMD64_LEVELS: readonly (readonly [number, readonly string[]])[] = [
  [2, ['cx16', 'lahf_lm', 'popcnt', 'sse4_1', 'sse4_2', 'ssse3']],
  [3, ['abm', 'avx', 'avx2', 'bmi1', 'bmi2', 'f16c', 'fma', 'movbe', 'xsave']],
  [4, ['avx512f', 'avx512bw', 'avx512cd', 'avx512dq', 'avx512vl']],
];
const SPELLINGS: Readonly<Record<string, readonly [architecture: string, variant: string]>> = {
  x86_64: ['amd64', ''],
  'x86-64': ['amd64', ''],
  aarch64: ['arm64', ''],
  i386: ['386', ''],
  armhf: ['arm', 'v7'],
  armel: ['arm', 'v6'],
};
/** Variants that are equivalent to no variant. */
const PLAIN: Readonly<Record<string, string>> = { amd64: 'v1', arm64: 'v8', arm: 'v7' };

/** Converts Node's `process.arch` to the name in image platforms. */
export function platformArchitecture(nodeArch: string): string {
  const known: Readonly<Record<string, string>> = {
    x64: 'amd64',
    arm64: 'arm64',
    arm: 'arm',
    ia32: '386',
    riscv64: 'riscv64',
  };
  return known[nodeArch] ?? nodeArch;
}

/** Platform of an architecture. `level` is the micro-architecture level of an amd64 processor. */
export function platformOf(architecture: string, level = 1): Platform {
  if (architecture === 'arm') return { architecture, variants: ['', 'v6', 'v5'] };
  if (architecture !== 'amd64') return { architecture, variants: [''] };
  // Images without a variant run everywhere, so they come first, as in containerd.
  return { architecture, variants: ['', ...['v4', 'v3', 'v2'].slice(4 - Math.max(level, 1))] };
}

/** Parses `OS/ARCHITECTURE[/VARIANT]`. Returns undefined if it is not a Linux platform. */
export function parsePlatform(text: string): Platform | undefined {
  const [os, given = '', variant = '', ...rest] = text.split('/');
  if (os !== 'linux' || !/^[a-z0-9_-]+$/.test(given) || !/^[a-z0-9.]*$/.test(variant) || rest.length > 0)
    return undefined;
  const { architecture, variant: wanted } = normalised({ os, architecture: given, variant });
  if (architecture === 'amd64') return platformOf(architecture, Number(/^v(\d)$/.exec(wanted)?.[1] ?? 1));
  if (wanted === '') return platformOf(architecture);
  return {
    architecture,
    variants: architecture === 'arm' ? ['v6', 'v5'].slice(wanted === 'v5' ? 1 : 0) : [wanted, ''],
  };
}

/** The platform of this machine. */
export async function machinePlatform(architecture = platformArchitecture(process.arch)): Promise<Platform> {
  if (architecture !== 'amd64') return platformOf(architecture);
  return platformOf(architecture, amd64Level(await readFile('/proc/cpuinfo', 'utf8').catch(() => '')));
}

/** Micro-architecture level from the text of /proc/cpuinfo. */
export function amd64Level(cpuinfo: string): number {
  const flags = new Set(/^flags\s*:(.*)$/m.exec(cpuinfo)?.[1]?.split(/\s+/) ?? []);
  let level = 1;
  for (const [next, needed] of AMD64_LEVELS) {
    if (!needed.every((flag) => flags.has(flag))) break;
    level = next;
  }
  return level;
}

/** The best matching manifest. A manifest without a platform is used only if no other manifest matches. */
export function choosePlatform<T extends { readonly platform: ImagePlatform | undefined }>(
  manifests: readonly T[],
  host: Platform,
): T | undefined {
  const ranked = manifests.flatMap((each) => {
    const rank = each.platform === undefined ? Number.POSITIVE_INFINITY : rankOf(each.platform, host);
    return rank === undefined ? [] : [{ each, rank }];
  });
  return ranked.toSorted((a, b) => (a.rank === b.rank ? 0 : a.rank - b.rank))[0]?.each;
}

/** Throws RuntimeError 'image-pull' if the image is for another platform. */
export function checkPlatform(image: ImagePlatform, host: Platform, what: string): void {
  // Configurations of manually built images often name no platform.
  const os = image.os === '' ? 'linux' : image.os;
  const given = { ...image, os, architecture: image.architecture === '' ? host.architecture : image.architecture };
  if (rankOf(given, host) !== undefined) return;
  const name = [given.os, given.architecture, ...(given.variant === '' ? [] : [given.variant])].join('/');
  const here = `linux/${host.architecture}`;
  throw new RuntimeError(
    'image-pull',
    `${what}: the image is for ${name}, which does not run on ${here}; use the image for ${here}, or give --platform ${name}`,
  );
}

function rankOf(platform: ImagePlatform, host: Platform): number | undefined {
  const { os, architecture, variant } = normalised(platform);
  const rank = host.variants.indexOf(variant);
  return os !== 'linux' || architecture !== host.architecture || rank < 0 ? undefined : rank;
}

function normalised({ os, architecture, variant }: ImagePlatform): ImagePlatform {
  const [name, implied] = Object.hasOwn(SPELLINGS, architecture)
    ? (SPELLINGS[architecture] ?? [architecture, ''])
    : [architecture, ''];
  const wanted = (variant === '' ? implied : variant).replace(/^(\d)/, 'v$1');
  return { os, architecture: name, variant: wanted === PLAIN[name] ? '' : wanted };
}
