/** Releases that were imported into the cluster. Each is verified with the keys that this host trusts. */
import type { ConfigMap } from '../../../api/generated/core/v1.ts';
import {
  type Announcement,
  announcementOf,
  RELEASE_LABEL,
  RELEASE_NAMESPACE,
  releaseImage,
} from '../../../api/releases/announcement.ts';
import { resources } from '../../../api/resources.ts';
import type { Log } from '../../../base/log.ts';
import type { Informer, InformerFactory } from '../../../client/types.ts';
import type { KnownRelease } from '../../updates/core/index.ts';
import type { VerifyRelease } from '../../updates/releases-port.ts';

export interface ReleasesDeps {
  readonly informers: InformerFactory;
  readonly verify: VerifyRelease;
  readonly log: Log;
}

export class Releases {
  readonly #maps: Informer<ConfigMap>;
  readonly #deps: ReleasesDeps;
  readonly #refused = new Set<string>();

  constructor(deps: ReleasesDeps) {
    this.#deps = deps;
    this.#maps = deps.informers.informer(resources.configMaps, {
      namespace: RELEASE_NAMESPACE,
      labelSelector: RELEASE_LABEL,
    });
  }

  onChange(changed: () => void): () => void {
    return this.#maps.onChange({ added: changed, updated: changed, deleted: changed });
  }

  /** Verified releases. A rejected release is omitted and logged once. */
  list(): KnownRelease[] {
    return this.#maps.list().flatMap((map) => this.#known(announcementOf(map)) ?? []);
  }

  #known(announcement: Announcement): KnownRelease | undefined {
    const verified = this.#deps.verify(announcement);
    if ('problem' in verified) {
      const line = `${announcement.name}: ${verified.problem}`;
      if (!this.#refused.has(line)) this.#deps.log.warn('release refused', { reason: line });
      this.#refused.add(line);
      return undefined;
    }
    const { version, kubernetes, channels, files } = verified.manifest;
    const architectures = files.map(({ architecture }) => architecture);
    const { digest } = verified;
    return { version, kubernetes, channels, architectures, manifest: digest, image: releaseImage(digest) };
  }
}
