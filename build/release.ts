/**
 * `npm run release -- --key FILE [--images FILE…] [--manifests FILE]… [--join URL --token T --ca-hash H]` writes the
 * files of a release to dist/release. Two runs for one commit with the same Node, strip(1) and apt sources write the
 * same bytes (docs/release.md).
 */
import { execFile } from 'node:child_process';
import { createPublicKey } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { messageOf } from '../src/base/errors.ts';
import { PRODUCT_VERSION } from '../src/base/versions/version.ts';
import { parseSigningKey } from '../src/openshift/updates/io/index.ts';
import { helperBundle } from './helpers.ts';
import { assembleRelease } from './release/assemble.ts';
import { DEBIAN_ARCHITECTURE } from './release/package-files.ts';
import type { BundledPackage } from './release/sbom.ts';

const ARCHITECTURES = ['x64', 'arm64'] as const;
const run = promisify(execFile);
const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function release(): Promise<void> {
  const { values: flags, positionals } = parseArgs({
    options: {
      key: { type: 'string' },
      images: { type: 'string', multiple: true, default: [] },
      manifests: { type: 'string', multiple: true, default: [] },
      join: { type: 'string' },
      token: { type: 'string' },
      'ca-hash': { type: 'string' },
    },
    allowPositionals: true,
  });
  if (flags.key === undefined)
    throw new Error('--key: give the Ed25519 private key: openssl genpkey -algorithm ed25519 -out release.key');
  const key = parseSigningKey(await readFile(flags.key, 'utf8'));
  const { images, manifests, join: server, token, 'ca-hash': caHash } = flags;
  if (
    (server ?? token ?? caHash) !== undefined &&
    (server === undefined || token === undefined || caHash === undefined)
  )
    throw new Error('--join, --token, --ca-hash: give all three, as hyperedge token create prints them');
  const joined = server === undefined ? undefined : { server, token: token ?? '', caHash: caHash ?? '' };
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
  if (version !== PRODUCT_VERSION)
    throw new Error(`package.json: has version ${version}, src/base/versions/version.ts ${PRODUCT_VERSION}; set both`);
  const epoch = await sourceDate();
  await mkdir(join(dist, 'cache'), { recursive: true });
  const bundled = new Map<string, readonly BundledPackage[]>();
  for (const architecture of ARCHITECTURES) {
    const helpers = await helperBundle(architecture, join(dist, 'cache'), say);
    if (helpers === undefined) throw new Error(`${architecture}: no bundled programs; see the reason above`);
    bundled.set(DEBIAN_ARCHITECTURE[architecture], helpers.notices);
  }
  const spki = createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
  const args = [join(root, 'build/package.ts'), '--all', '--strict', `--trust=${spki}`];
  const { stdout } = await run(process.execPath, args, { maxBuffer: 1 << 24 });
  process.stdout.write(stdout);
  const executables = new Map(
    ARCHITECTURES.map((architecture) => [architecture, join(dist, `hyperedge-linux-${architecture}`)]),
  );
  const directory = join(dist, 'release');
  await assembleRelease({
    directory,
    version: PRODUCT_VERSION,
    epoch,
    key,
    executables,
    bundled,
    lock: join(root, 'package-lock.json'),
    changelog: join(root, 'CHANGELOG.md'),
    offline: { images: [...images, ...positionals], manifests, join: joined },
    say,
  });
  say(`release ${PRODUCT_VERSION} is in ${directory}`);
}

/**
 * SOURCE_DATE_EPOCH if it is set, otherwise the time of the commit. Source:
 * reproducible-builds.org/specs/source-date-epoch.
 */
async function sourceDate(): Promise<number> {
  const given = process.env['SOURCE_DATE_EPOCH'];
  const text = given ?? (await run('git', ['-C', root, 'log', '-1', '--format=%ct'])).stdout.trim();
  if (!/^\d{1,11}$/.test(text)) throw new Error(`SOURCE_DATE_EPOCH: "${text}" is not a number of seconds`);
  return Number(text);
}

await release().catch((error: unknown) => {
  process.stderr.write(`release: ${messageOf(error)}\n`);
  process.exit(1);
});
