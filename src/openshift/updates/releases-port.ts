/** Port for the verification of announced releases. Implemented by `src/openshift/updates/io`. */
import type { Announcement } from '../../api/releases/announcement.ts';
import type { ReleaseManifest } from '../../api/releases/manifest.ts';

export type VerifiedRelease =
  /** `digest`: SHA-256 of the manifest's text in hex. */
  { readonly manifest: ReleaseManifest; readonly digest: string } | { readonly problem: string };

/** Verifies signature, format and name with the currently trusted keys. Results are cached by text. */
export type VerifyRelease = (announcement: Announcement) => VerifiedRelease;
