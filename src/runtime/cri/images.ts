import { type ImageService, type ImageStatus, RuntimeError, type RuntimeErrorCode } from '../port.ts';
import type { CriCalls } from './calls.ts';
import type { Message, MessageType } from './codec.ts';
import * as messages from './messages.ts';

const PULL_TIMEOUT_MS = 30 * 60_000;

type ListedImage = Message<typeof messages.listImagesResponse>['images'][number];

export function criImages(calls: CriCalls): ImageService {
  const empty: MessageType = {};
  return {
    async pull(image, auth) {
      try {
        const options = { timeoutMs: PULL_TIMEOUT_MS, otherwise: 'image-pull' } as const;
        const request = { image: { image }, ...(auth === undefined ? {} : { auth }) };
        await calls.call('ImageService/PullImage', [messages.pullImage, request], messages.idOnly, options);
      } catch (error) {
        throw pullError(error);
      }
      const found = await this.status(image);
      if (found === undefined) throw new RuntimeError('image-pull', `image ${image} does not exist after its pull`);
      return found.id;
    },
    async status(image) {
      const request = [messages.imageRequest, { image: { image } }] as const;
      const { image: found } = await calls.call('ImageService/ImageStatus', request, messages.imageStatusResponse);
      return found === undefined ? undefined : describeImage(found);
    },
    async list() {
      const answer = await calls.call('ImageService/ListImages', [empty, {}], messages.listImagesResponse);
      return answer.images.map(describeImage);
    },
    async remove(image) {
      await calls.call('ImageService/RemoveImage', [messages.imageRequest, { image: { image } }], empty);
    },
  };
}

/** Derives an error code from the message text, because runtimes report registry errors only as text. */
function pullError(error: unknown): unknown {
  if (!(error instanceof RuntimeError)) return error;
  const { message } = error;
  return new RuntimeError(pullErrorCode(message), message, { cause: error });
}

function pullErrorCode(message: string): RuntimeErrorCode {
  if (/not found/.test(message)) return 'image-not-found';
  if (/unauthorized|authorization failed|denied/.test(message)) return 'image-pull-denied';
  return /invalid reference/.test(message) ? 'image-invalid-name' : 'image-pull';
}

function describeImage(image: ListedImage): ImageStatus {
  return {
    id: image.id,
    repoTags: image.tags,
    repoDigests: image.digests,
    sizeBytes: image.size,
    ...(image.uid === undefined ? {} : { uid: image.uid.value }),
    ...(image.username === '' ? {} : { username: image.username }),
  };
}
