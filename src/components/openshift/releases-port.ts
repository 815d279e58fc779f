/** Verification of announced releases. Implemented by `src/io/releases`. */
import type { Announcement } from '../../api/releases/announcement.ts';
import type { ReleaseManifest } from '../../api/releases/manifest.ts';

export type VerifiedRelease =
  /** `digest`: SHA-256 of the manifest's text in hex. */
  { readonly manifest: ReleaseManifest; readonly digest: string } | { readonly problem: string };

/** Checks signature, form and name with the keys that are trusted now. Results of one text are remembered. */
export type VerifyRelease = (announcement: Announcement) => VerifiedRelease;
