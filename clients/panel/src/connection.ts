// The web socket to the server: messages in, wishes out, each wish with its reply.

import type { Message, ReplyMessage, Wish } from "./messages";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
const GOING_AWAY = 1001;

export type Link = "connecting" | "open" | "lost" | "closed";

export class Connection {
  private socket: WebSocket | null = null;
  private next = 1;
  private wait = FIRST_WAIT_MS;
  private readonly waiting = new Map<number, (reply: ReplyMessage) => void>();

  constructor(
    private readonly heard: (message: Exclude<Message, ReplyMessage>) => void,
    private readonly changed: (link: Link) => void,
  ) {}

  /** Connect, and connect again whenever the connection is lost, until the server says that it closes. */
  open(): void {
    const address = new URL("socket", location.href);
    address.protocol = "ws:";
    address.hash = "";
    const socket = new WebSocket(address);
    this.socket = socket;
    this.changed("connecting");
    socket.addEventListener("open", () => {
      this.wait = FIRST_WAIT_MS;
      this.changed("open");
    });
    socket.addEventListener("message", (event) => this.receive(event.data as string));
    socket.addEventListener("close", (event) => {
      this.socket = null;
      for (const [id, settle] of this.waiting) {
        settle({ type: "reply", id, error: "The connection to the language server is lost." });
      }
      this.waiting.clear();
      if (event.code === GOING_AWAY && event.reason === "closed") {
        this.changed("closed");
        return;
      }
      this.changed("lost");
      setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(2 * this.wait, LONGEST_WAIT_MS);
    });
  }

  /** Ask for something; the reply's `error` says why not. */
  ask(wish: Wish): Promise<ReplyMessage> {
    const id = this.next++;
    if (this.socket?.readyState !== WebSocket.OPEN) {
      return Promise.resolve({ type: "reply", id, error: "There is no connection to the language server." });
    }
    this.socket.send(JSON.stringify({ id, ...wish }));
    return new Promise((settle) => this.waiting.set(id, settle));
  }

  private receive(text: string): void {
    const message = JSON.parse(text) as Message;
    if (message.type === "reply") {
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    } else {
      this.heard(message);
    }
  }
}
