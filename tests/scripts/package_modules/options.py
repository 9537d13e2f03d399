import argparse


def get_args_parser():
    parser = argparse.ArgumentParser("pre-training", add_help=False)
    parser.add_argument("--batch_size", default=8, type=int,
                        help="Batch size per process (the effective one is batch_size * accum_iter)")
    parser.add_argument("--epochs", default=1, type=int)
    parser.add_argument("--accum_iter", default=2, type=int)
    parser.add_argument("--blr", default=1e-3, type=float)
    parser.add_argument("--num_workers", default=0, type=int)
    return parser
