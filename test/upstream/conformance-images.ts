/**
 * The images that upstream's end-to-end suite asks for, made on this host: agnhost and sample-apiserver from upstream's own sources,
 * the rest of busybox and Debian's programs under the names that the suite knows. Registries are never asked.
 */
import { execFile } from 'node:child_process';
import { readFile, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import {
  busyboxLayer,
  directory,
  type Entry,
  type ImageToWrite,
  writeDockerArchive,
} from '../../build/docker-archive.ts';

const run = promisify(execFile);
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

const file = (name: string, content: Buffer | string, mode = 0o644): Entry => ({
  name,
  type: 'file',
  mode,
  content: Buffer.from(content),
});

/** Directories above an entry, then the entry; what is there already is left out. */
class LayerBuilder {
  readonly entries: Entry[] = [];
  readonly #names = new Set<string>();

  add(entry: Entry): this {
    if (this.#names.has(entry.name)) return this;
    const parent = dirname(entry.name);
    if (parent !== '.') this.add(directory(parent));
    this.#names.add(entry.name);
    this.entries.push(entry);
    return this;
  }

  /** A program of this host with the libraries it is linked with. */
  async program(path: string, target: string, mode = 0o755): Promise<this> {
    this.add(file(target, await readFile(await realpath(path)), mode));
    const { stdout } = await run('ldd', [path]).catch(() => ({ stdout: '' }));
    for (const [, library] of stdout.matchAll(/(\/\S+) \(0x/g))
      if (library !== undefined) this.add(file(library.slice(1), await readFile(await realpath(library)), 0o755));
    return this;
  }
}

/** Serves a directory on port 80 as the small web servers do that the suite asks for. */
function webServer(tag: string, base: readonly Entry[], root: string, pages: readonly Entry[]): ImageToWrite {
  const builder = new LayerBuilder().add(directory(root.slice(1)));
  for (const page of pages) builder.add(page);
  return {
    tag,
    layers: [base, builder.entries],
    // The first process of a container is not ended by a signal that it does not handle.
    config: {
      Env: [PATH],
      Cmd: ['sh', '-c', `trap 'exit 0' TERM; httpd -f -p 80 -h ${root} & wait`],
      ExposedPorts: { '80/tcp': {} },
    },
  };
}

export interface UpstreamPlaces {
  /** Directory of agnhost and sample-apiserver, built static. */
  readonly programs: string;
  /** The source tree of Kubernetes. */
  readonly sources: string;
}

/** Writes all images into one docker-archive. Throws when a program is missing. */
export async function writeConformanceImages(path: string, places: UpstreamPlaces): Promise<void> {
  const base = await busyboxLayer();
  const porter = join(places.sources, 'test/images/agnhost/porter');
  const agnhost = new LayerBuilder()
    .add(file('agnhost', await readFile(join(places.programs, 'agnhost')), 0o755))
    .add({ name: 'agnhost-2', type: 'symlink', mode: 0o777, linkname: 'agnhost' })
    .add(file('localhost.crt', await readFile(join(porter, 'localhost.crt'))))
    .add(file('localhost.key', await readFile(join(porter, 'localhost.key'))))
    .add(directory('uploads', 0o777));
  // busybox' shell runs its own programs before those on the path.
  const tools = await new LayerBuilder().program('/bin/dash', 'bin/sh');
  for (const each of ['/usr/bin/curl', '/usr/bin/dig', '/usr/bin/nc', '/bin/ss']) {
    const target = await realpath(each);
    await tools.program(target, `usr/local/bin/${basename(each)}`);
  }
  const setuid = await new LayerBuilder().program('/usr/bin/id', 'usr/bin/id', 0o4755);
  const etcd = await new LayerBuilder().program('/usr/bin/etcd', 'usr/local/bin/etcd');
  const apiServer = new LayerBuilder().add(
    file('sample-apiserver', await readFile(join(places.programs, 'sample-apiserver')), 0o755),
  );
  const agnhostLayers = [base, agnhost.entries, tools.entries];
  const agnhostConfig = { Env: [PATH], Entrypoint: ['/agnhost'], Cmd: ['pause'] };
  const animal = (name: string): ImageToWrite => ({
    tag: `gcr.io/kubernetes-e2e-test-images/${name}:1.0`,
    layers: [...agnhostLayers, [file('data.json', `{"image": "${name}.jpg"}\n`), file(`${name}.jpg`, name)]],
    config: { ...agnhostConfig, Cmd: ['test-webserver'] },
  });
  const shell = { Env: [PATH], Cmd: ['sh'] };
  const page = '<html><body><h1>It works!</h1></body></html>\n';
  await writeDockerArchive(path, [
    { tag: 'k8s.gcr.io/e2e-test-images/agnhost:2.21', layers: agnhostLayers, config: agnhostConfig },
    { tag: 'docker.io/library/busybox:1.29', layers: [base], config: shell },
    { tag: 'docker.io/library/busybox:latest', layers: [base], config: shell },
    { tag: 'k8s.gcr.io/pause:3.2', layers: agnhostLayers, config: agnhostConfig },
    { tag: 'gcr.io/kubernetes-e2e-test-images/nonroot:1.0', layers: [base], config: { ...shell, User: '1234' } },
    {
      tag: 'gcr.io/kubernetes-e2e-test-images/nonewprivs:1.0',
      layers: [base, setuid.entries],
      // What the process may become is what its setuid program finds itself to be.
      config: { ...shell, User: '1000', Entrypoint: ['sh', '-c', 'echo "Effective uid: $(/usr/bin/id -u)"'], Cmd: [] },
    },
    { tag: 'gcr.io/kubernetes-e2e-test-images/jessie-dnsutils:1.0', layers: agnhostLayers, config: shell },
    animal('nautilus'),
    animal('kitten'),
    ...['2.4.38-alpine', '2.4.39-alpine'].map((version) =>
      webServer(`docker.io/library/httpd:${version}`, base, '/usr/local/apache2/htdocs', [
        file('usr/local/apache2/htdocs/index.html', page),
      ]),
    ),
    ...['1.14-alpine', '1.15-alpine'].map((version) =>
      webServer(`docker.io/library/nginx:${version}`, base, '/usr/share/nginx/html', [
        file('usr/share/nginx/html/index.html', page),
      ]),
    ),
    { tag: 'k8s.gcr.io/etcd:3.4.13-0', layers: [base, etcd.entries], config: shell },
    {
      tag: 'gcr.io/kubernetes-e2e-test-images/sample-apiserver:1.17',
      layers: [base, apiServer.entries],
      config: { Env: [PATH], Entrypoint: ['/sample-apiserver'] },
    },
  ]);
}
