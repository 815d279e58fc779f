/** Contents of the Debian package. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { LINK_NAMES } from '../../src/base/command-line/command-links.ts';
import { completionScript } from '../../src/cli/completion/scripts.ts';
import { DATA, KEPT } from '../../src/host/install/data-backup.ts';
import { type DebianPackage, debianVersion, writeDeb } from './deb.ts';
import { manPages } from './manual.ts';
import { type Entry, gzipped } from './tar.ts';

export type Architecture = 'x64' | 'arm64';

export interface DebInput {
  readonly executable: string;
  readonly architecture: Architecture;
  readonly version: string;
  /** Time of the files, in seconds since 1970. */
  readonly epoch: number;
  readonly notes: string;
}

export const DEBIAN_ARCHITECTURE: Readonly<Record<Architecture, 'amd64' | 'arm64'>> = { x64: 'amd64', arm64: 'arm64' };
const MAINTAINER = 'hyperedge maintainers <maintainers@hyperedge.dev>';
const HOMEPAGE = 'https://hyperedge.dev';
const TEMPLATES = join(import.meta.dirname, 'debian');
const UNITS = join(import.meta.dirname, '../../systemd');
const PACKAGED_UNITS = [
  'hyperedge.service',
  'hyperedge-machine-config.service',
  'hyperedge-update-guard.service',
  'hyperedge.slice',
];
const CONFFILE = '/etc/origin/bootstrap.yaml.d/00-package.yaml';
/** Directories that a purge removes in addition to the data directories. */
const OTHER_DATA = ['/var/cache/hyperedge', '/run/hyperedge'];
/** Dependencies. Node's builds require glibc 2.28 (nodejs/node: BUILDING.md). */
const DEPENDS = ['libc6 (>= 2.28)', 'libgcc-s1', 'libstdc++6 (>= 9)'];

export const debName = (version: string, architecture: Architecture): string =>
  `hyperedge_${debianVersion(version)}_${DEBIAN_ARCHITECTURE[architecture]}.deb`;

/** Writes the package to `path`. */
export async function writePackage(path: string, input: DebInput): Promise<void> {
  const { architecture, version, epoch } = input;
  const data = [...DATA.map((name) => `/${name}`), `/${KEPT}`, ...OTHER_DATA].join(' ');
  const filled = async (name: string): Promise<string> =>
    (await readFile(join(TEMPLATES, name), 'utf8'))
      .replaceAll('@VERSION@', debianVersion(version))
      .replaceAll('@DATA@', data)
      .replaceAll('@MAINTAINER@', MAINTAINER)
      .replaceAll('@HOMEPAGE@', HOMEPAGE);
  const scripts: Record<string, string> = {};
  for (const name of ['postinst', 'prerm', 'postrm']) scripts[name] = await filled(name);
  const given: DebianPackage = {
    name: 'hyperedge',
    version: debianVersion(version),
    architecture: DEBIAN_ARCHITECTURE[architecture],
    maintainer: MAINTAINER,
    depends: DEPENDS,
    section: 'admin',
    homepage: HOMEPAGE,
    summary: 'Kubernetes control plane and node in one executable',
    description: [
      'hyperedge runs the control plane of OKD and a node on bare-metal hosts and',
      'Raspberry Pis. It contains its container runtime and network tools.',
      '',
      'The package starts nothing; run "hyperedge install" to start the service.',
    ],
    entries: await entriesOf(input, filled),
    conffiles: [CONFFILE],
    scripts,
  };
  await writeDeb(path, given, epoch);
}

async function entriesOf(
  { executable, version, epoch, notes }: DebInput,
  filled: (name: string) => Promise<string>,
): Promise<Entry[]> {
  const file = (path: string, text: string | Buffer, mode = 0o644): Entry => ({
    path,
    type: 'file',
    mode,
    content: Buffer.from(text),
  });
  const date = new Date(epoch * 1000);
  const change = `hyperedge (${debianVersion(version)}) stable; urgency=medium\n\n  * ${changeLine(notes)}\n\n -- ${MAINTAINER}  ${date.toUTCString().replace('GMT', '+0000')}\n`;
  const pages = manPages(version, date.toISOString().slice(0, 10));
  return [
    { path: '/usr/bin/hyperedge', type: 'copy', mode: 0o755, source: executable, size: (await stat(executable)).size },
    ...LINK_NAMES.map(
      (name): Entry => ({ path: `/usr/lib/hyperedge/bin/${name}`, type: 'link', target: '../../../bin/hyperedge' }),
    ),
    ...(await Promise.all(
      PACKAGED_UNITS.map(async (name) => file(`/usr/lib/systemd/system/${name}`, await readFile(join(UNITS, name)))),
    )),
    file(CONFFILE, await filled('00-package.yaml')),
    file('/usr/share/bash-completion/completions/hyperedge', completionScript('bash')),
    file('/usr/share/zsh/vendor-completions/_hyperedge', completionScript('zsh')),
    file('/usr/share/fish/vendor_completions.d/hyperedge.fish', completionScript('fish')),
    ...(await Promise.all(
      pages.map(async (page) => file(`/usr/share/man/man1/${page.file}.gz`, await gzipped(page.text))),
    )),
    file('/usr/share/doc/hyperedge/copyright', await filled('copyright')),
    file('/usr/share/doc/hyperedge/changelog.gz', await gzipped(change)),
    file('/usr/share/doc/hyperedge/NEWS.gz', await gzipped(notes)),
    file('/usr/share/lintian/overrides/hyperedge', await filled('lintian-overrides')),
  ];
}

/** Changelog entry. Debian's format has no links, so the entry refers to the release notes in a file of their own. */
const changeLine = (notes: string): string => `Release ${/^# hyperedge (\S+)/.exec(notes)?.[1] ?? ''}; see NEWS.gz.`;
